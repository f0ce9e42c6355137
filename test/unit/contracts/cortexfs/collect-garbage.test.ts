import { mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { collectGarbage } from '../../../../src/contracts/cortexfs/collect-garbage.js';
import { readPolicy } from '../../../../src/contracts/cortexfs/gc-plan.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { FOREIGN, filesIn, writeFiles } from '../../../support/session-directories.js';

const DAY = 86_400_000;
const first = (FOREIGN['messages.jsonl'] ?? '').split('\n').slice(0, 2).join('\n');
const DERIVED = {
  'context/gc.policy': '# ours\npack_ttl=1d\nswap_ttl=2d\ndedup_min_refs=2\nkeep_messages=1\nkeep_events=1\n',
  'context/pack.json': '{"items":[{"source":"context/dedup/sha256-c"}]}\n',
  'context/pack.md': '# Context pack\n',
  'context/swap/index.jsonl':
    '{"id":"sha256-1","kind":"message_range","source":"messages.jsonl","range":"1-2","summary":"s","tokens":3}\n',
  'context/swap/chunk/sha256-1': `${first}\n`,
  'context/swap/chunk/sha256-2': 'nobody else has this\n',
  'context/dedup/index.jsonl':
    '{"hash":"sha256-a","refs":["messages:4"],"bytes":1,"tokens":1}\n{"hash":"sha256-b","refs":["messages:4","messages:5"],"bytes":1,"tokens":1}\n',
  'context/dedup/blob/sha256-a': 'a',
  'context/dedup/blob/sha256-b': 'b',
  'context/dedup/blob/sha256-c': 'c',
  'context/dedup/blob/sha256-d': 'd',
} as const;

describe('garbage of a session directory', () => {
  let root = '';
  let folder = '';
  const files = { ...FOREIGN, ...DERIVED };
  const now = Date.UTC(2026, 10, 22, 12);
  const writtenBefore = async (path: string, ms: number) => {
    const at = new Date(now - ms);
    await utimes(join(folder, path), at, at);
  };
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'palimpsest-gc-'));
    folder = join(root, 'main');
    await writeFiles(folder, files);
    for (const path of Object.keys(DERIVED)) await writtenBefore(path, 3 * DAY);
    await writtenBefore('context/pack.md', DAY / 2);
    await writtenBefore('context/swap/chunk/sha256-abc', DAY);
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const gone = [
    'context/dedup/blob/sha256-a',
    'context/dedup/blob/sha256-d',
    'context/pack.json',
    'context/swap/chunk/sha256-1',
  ];

  test('is only reported, then moved whole into an archive with a manifest; raw files and children stay', async () => {
    const plan = await collectGarbage(folder, { now });
    expect(plan.collected.map(({ path }) => path)).toEqual(gone);
    expect(Object.fromEntries(plan.kept.map(({ path, reason }) => [path, reason]))).toEqual({
      'context/pack.md': 'written 43200 s ago, pack_ttl is 86400 s',
      'context/swap/chunk/sha256-2': 'it cannot be rebuilt from the raw files',
      'context/swap/chunk/sha256-abc': 'it cannot be rebuilt from the raw files',
      'context/dedup/blob/sha256-b': 'its index has 2 references',
      'context/dedup/blob/sha256-c': 'a pack or reference names it',
    });
    expect(plan.archived).toBeUndefined();
    expect(await filesIn(folder)).toEqual(files);
    expect(await readdir(root)).toEqual(['main']);

    const { archived = '' } = await collectGarbage(folder, { now, apply: true });
    const { 'manifest.json': manifest, ...moved } = await filesIn(archived);
    const isGone = ([path]: readonly [string, string]) => gone.includes(path);
    expect(moved).toEqual(Object.fromEntries(Object.entries(files).filter(isGone)));
    expect(JSON.parse(manifest ?? '')).toMatchObject({
      format: 1,
      directory: folder,
      files: gone.map((path) => ({ path })),
    });
    expect(await filesIn(folder)).toEqual(Object.fromEntries(Object.entries(files).filter((one) => !isGone(one))));
    // The pack that named it is gone.
    const again = await collectGarbage(folder, { now, apply: true });
    expect(again.collected.map(({ path }) => path)).toEqual(['context/dedup/blob/sha256-c']);
    expect(again.archived).not.toBe(archived);
    expect(await collectGarbage(folder, { now, apply: true })).toMatchObject({ collected: [], archived: undefined });
  });

  test('is collected at once without a policy, and nothing else ever is', async () => {
    await writeFile(join(folder, 'context/gc.policy'), '');
    const { collected } = await collectGarbage(folder, { now, apply: true });
    expect(collected.map(({ path }) => path)).toEqual([
      'context/dedup/blob/sha256-d',
      'context/pack.json',
      'context/pack.md',
      'context/swap/chunk/sha256-1',
    ]);
  });

  test.each([
    ['keep_messages=0', 'keep_messages=0 would remove raw history'],
    ['keep_events=0', 'SSOT'],
    ['pack_ttl=soon', 'pack_ttl must be a number with the unit'],
    ['dedup_min_refs=-1', 'whole number'],
    ['pack_ttl=1d\npack_ttl=2d', 'line 2: pack_ttl appears twice'],
    ['delete=all', 'is not a rule'],
    ['nonsense', 'line 1'],
  ])('is not collected with a policy of %j, whose line is named', async (text, says) => {
    expect(() => readPolicy(text)).toThrow(says);
    await writeFile(join(folder, 'context/gc.policy'), text);
    await expect(collectGarbage(folder, { now, apply: true })).rejects.toMatchObject({ code: 'invalid-policy' });
    expect(await readdir(root)).toEqual(['main']);
  });

  test('includes a chunk for raw lines only if it has their hash and nothing else', async () => {
    const hash = `sha256:${hashText(`${first}\n`)}`;
    const call = (FOREIGN['events.jsonl'] ?? '').split('\n')[1] ?? '';
    const chunks = {
      numbers: { source: 'messages.jsonl', start: 1, end: 2, hash },
      ids: { source: 'events.jsonl', start_event: 'c1', end_event: 'c1', hash: `sha256:${hashText(`${call}\n`)}` },
      unknown: { source: 'events.jsonl', start_event: 'c1', end_event: 'no', hash },
      claim: { source: 'messages.jsonl' },
      claimed: { source: 'messages.jsonl', start: 1, end: 2 },
      other: { source: 'messages.jsonl', start: 1, end: 1, hash },
      beyond: { source: 'messages.jsonl', start: 1, end: 9_999, hash },
      more: { source: 'messages.jsonl', start: 1, end: 2, hash, text: 'nobody else has this' },
    };
    const written = Object.entries(chunks).map(([name, chunk]) => [
      `context/swap/chunk/sha256-${name}`,
      `${JSON.stringify(chunk)}\n`,
    ]);
    await writeFiles(folder, {
      'context/gc.policy': 'pack_ttl=9d\ndedup_min_refs=0\n',
      ...Object.fromEntries(written),
    });
    const { collected } = await collectGarbage(folder, { now });
    expect(collected.map(({ path }) => path.slice('context/swap/chunk/sha256-'.length)).sort()).toEqual([
      '1',
      'ids',
      'numbers',
    ]);
  });

  test('is never archived in the directory itself, under any name or link', async () => {
    await symlink(join(folder, 'context'), join(root, 'elsewhere'));
    await symlink(folder, join(root, 'same'));
    for (const archive of [
      folder,
      join(folder, 'context/old'),
      join(folder, '..x'),
      join(root, 'elsewhere/old'),
      join(root, 'same/..x/y'),
    ])
      await expect(collectGarbage(folder, { now, apply: true, archive })).rejects.toMatchObject({ code: 'no-archive' });
    expect(await filesIn(folder)).toEqual({ ...files });
    expect(await collectGarbage(folder, { now, archive: join(root, '..x') })).toMatchObject({ archived: undefined });
  });
});
