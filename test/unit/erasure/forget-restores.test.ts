import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AllowedRoots } from '../../../src/filesystem/access/roots.js';
import { hashBytes } from '../../../src/objects/hashes.js';
import { canonicalPath } from '../../../src/objects/ids.js';
import { FORGET_RESTORES } from '../../../src/restore/forget-restores.js';
import { replaceKept } from '../../../src/restore/kept-replacements.js';

const SECRET = 'aunt "Olga"\nlives here';

describe('kept copies of files that a restore replaced', () => {
  let root: string;
  let dataDir: string;
  const kept = new Map<string, string>();
  const FORMS: Readonly<Record<string, Buffer>> = {
    'as it is': Buffer.from(`x ${SECRET} y`),
    'with other line endings': Buffer.from(SECRET.replaceAll('\n', '\r\n')),
    'in JSON': Buffer.from(JSON.stringify({ text: SECRET })),
    'in JSON in JSON': Buffer.from(JSON.stringify(JSON.stringify({ text: SECRET }))),
    'in UTF-16': Buffer.from(`\ufeff${SECRET}`, 'utf16le'),
    'in big-endian UTF-16': Buffer.from(`\ufeff${SECRET}`, 'utf16le').swap16(),
    'not at all': Buffer.from('aunt Olga lives elsewhere'),
  };

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-forget-')));
    dataDir = join(root, 'data');
    await mkdir(dataDir);
    const roots = await AllowedRoots.open([root]);
    for (const [form, bytes] of Object.entries(FORMS)) {
      const path = canonicalPath(join(root, form));
      await writeFile(path, bytes);
      const after = Buffer.from('restored');
      const replacement = { path, before: hashBytes(bytes), after: hashBytes(after), bytes: async () => after };
      kept.set(
        form,
        await replaceKept(dataDir, { roots, of: { session: 's', turn: 1, step: 1 }, replacements: [replacement] }),
      );
    }
  });
  afterAll(() => rm(root, { recursive: true, force: true }));

  test('are deleted if they contain an erased text in any form, and stay otherwise', async () => {
    const order = { sessions: new Set<string>(), documents: new Set<string>(), texts: [SECRET] };
    expect(await FORGET_RESTORES.find(dataDir, order)).toHaveLength(Object.keys(FORMS).length - 1);
    await FORGET_RESTORES.forget(dataDir, order);
    const left = [...kept].filter(([, id]) => existsSync(join(dataDir, 'restores', id)));
    expect(left.map(([form]) => form)).toEqual(['not at all']);
    await FORGET_RESTORES.forget(dataDir, { ...order, texts: [], sessions: new Set(['s']) });
    expect(existsSync(join(dataDir, 'restores', kept.get('not at all') ?? ''))).toBe(false);
  });
});
