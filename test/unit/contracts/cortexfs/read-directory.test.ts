import { appendFile, mkdir, mkdtemp, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { fileFindings } from '../../../../src/contracts/cortexfs/check-file.js';
import { planImport, sessionOf } from '../../../../src/contracts/cortexfs/plan-import.js';
import { isSessionDirectory, readDirectory } from '../../../../src/contracts/cortexfs/read-directory.js';
import { sessionDirectory } from '../../../../src/contracts/cortexfs/session-directory.js';
import { hashText } from '../../../../src/objects/hashes.js';
import { projectionOf, WORDS } from '../../../support/any-session.js';
import { FOREIGN, writeFiles } from '../../../support/session-directories.js';

describe('reading a session directory', () => {
  let root = '';
  let folder = '';
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'palimpsest-directory-'));
    folder = join(root, 'main');
    await writeFiles(folder, FOREIGN);
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const refused = (code: string, ...says: readonly string[]) =>
    expect(readDirectory(folder)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(new RegExp(says.map((word) => word.replace(/[.[\]/*]/g, '\\$&')).join('.*'))),
    });

  test('returns it whole, without the leftovers of killed writers', async () => {
    await writeFile(join(folder, 'state.1-0123456789abcdef-0123456789abcdef.draft'), 'hal');
    const { files, leftOut } = await readDirectory(folder);
    expect(Object.fromEntries(files)).toEqual(FOREIGN);
    expect(leftOut).toEqual([]);
    await expect(isSessionDirectory(folder)).resolves.toBe(true);
    await expect(isSessionDirectory(root)).resolves.toBe(false);
    expect(sessionOf(folder, files)).toBe('main');
  });

  test('skips and names a child’s artifact that is not text', async () => {
    await writeFile(join(folder, 'context/child/rev-1/artifact/a.png'), Buffer.from([0x89, 0x50, 0xff]));
    await expect(readDirectory(folder)).resolves.toMatchObject({ leftOut: ['context/child/rev-1/artifact/a.png'] });
  });

  test.each<readonly [string, string, readonly string[], () => Promise<unknown>]>([
    ['no folder', 'no-session', ['does not exist'], () => rm(folder, { recursive: true })],
    ['no messages', 'no-session', ['messages.jsonl is missing'], () => rm(join(folder, 'messages.jsonl'))],
    [
      'a cut last line',
      'invalid-file',
      ['messages.jsonl, line 10', 'truncated'],
      () => appendFile(join(folder, 'messages.jsonl'), '{"role":"user","content":"x"}'),
    ],
    [
      'a line that is not JSON',
      'invalid-file',
      ['events.jsonl, line 10'],
      () => appendFile(join(folder, 'events.jsonl'), '{"type"\n'),
    ],
    [
      'a wrong field',
      'invalid-file',
      ['context/refs.jsonl, line 2', 'kind'],
      () => appendFile(join(folder, 'context/refs.jsonl'), '{"id":"r2","path":"a","kind":"x","summary":"s"}\n'),
    ],
    [
      'a native field',
      'invalid-file',
      ['messages.jsonl, line 10', 'thread_id'],
      () => appendFile(join(folder, 'messages.jsonl'), '{"role":"user","content":"x","meta":{"thread_id":"t"}}\n'),
    ],
    [
      'no UTF-8',
      'invalid-file',
      ['latest.md', 'UTF-8'],
      () => writeFile(join(folder, 'latest.md'), Buffer.from([0xff, 0x0a])),
    ],
    [
      'a file too large',
      'too-large',
      ['context/summary.md', '16777216'],
      () => truncate(join(folder, 'context/summary.md'), 16_777_217),
    ],
    [
      'more than can be kept',
      'too-large',
      ['268435456', 'messages.jsonl'],
      () => truncate(join(folder, 'messages.jsonl'), 60_000_000),
    ],
    [
      'a linked file',
      'symbolic-link',
      ['context/plan.json'],
      () => symlink('/etc/hostname', join(folder, 'context/plan.json')),
    ],
    ['a linked folder', 'symbolic-link', ['context/dedup'], () => symlink(root, join(folder, 'context/dedup'))],
    [
      'a linked directory',
      'symbolic-link',
      ['main'],
      async () => {
        await rename(folder, join(root, 'real'));
        await symlink(join(root, 'real'), folder);
      },
    ],
    [
      'a child’s own session',
      'foreign-session',
      ['context/child/rev-1/messages.jsonl'],
      () => writeFile(join(folder, 'context/child/rev-1/messages.jsonl'), ''),
    ],
    [
      'another session',
      'foreign-session',
      ['session/other/messages.jsonl'],
      async () => {
        await mkdir(join(folder, 'session/other'), { recursive: true });
        await writeFile(join(folder, 'session/other/messages.jsonl'), '');
      },
    ],
    [
      'an unknown member of our own file',
      'invalid-file',
      ['context/palimpsest.jsonl, line 1', 'no field colour'],
      () =>
        writeFile(
          join(folder, 'context/palimpsest.jsonl'),
          `{"format":1,"session":"s","lines":0,"sha256":"${'0'.repeat(64)}","colour":1}\n`,
        ),
    ],
    [
      'an unknown version of our own file',
      'invalid-file',
      ['context/palimpsest.jsonl, line 1', 'format is 2', 'update'],
      () => writeFile(join(folder, 'context/palimpsest.jsonl'), '{"format":2}\n'),
    ],
    ...(
      [
        ['what an import keeps', 'import', { format: 'cortexfs', whole: hashText(''), part: 0, parts: 1, text: '' }],
        ['what an import kept before', 'event', { type: 'cortexfs.import', data: {} }],
        ['that a list began anew', 'event', { type: 'amplifier.cleared', data: {} }],
        ['a reviewer’s verdict', 'review', { verdict: 'right' }],
        ['what a target was given', 'injection', { target: 'a' }],
      ] as const
    ).map(([what, kind, body]): [string, string, readonly string[], () => Promise<unknown>] => [
      `a record of ${what}`,
      'invalid-file',
      ['context/palimpsest.jsonl, line 2', 'record.kind', 'a directory may only bring records of approval'],
      () =>
        writeFile(
          join(folder, 'context/palimpsest.jsonl'),
          [
            { format: 1, session: 's', lines: 0, sha256: hashText('') },
            { record: { kind, turn: 0, seq: 0, at: 1, basis: null, body } },
          ]
            .map((line) => `${JSON.stringify(line)}\n`)
            .join(''),
        ),
    ]),
  ])('fails with %s', async (_what, code, says, harm) => {
    await harm();
    await refused(code, ...says);
  });

  test('refuses our own file with an unknown member or for other messages', () => {
    const projection = projectionOf(
      [
        { kind: 'user', text: 'a' },
        { kind: 'said', text: 'b' },
      ],
      WORDS,
    );
    const step = {
      session: projection.session,
      seq: 1,
      turn: 1,
      at: 1,
      opens: { rule: 'user-message' },
      changes: {},
    } as const;
    const own = { steps: [{ ...step, message: { role: 'user', text: 'a' } }], contents: new Map(), records: [] };
    const { files } = sessionDirectory(projection, [], { own });
    const changed = (path: string, from: string, to: string) =>
      new Map(files).set(path, (files.get(path) ?? '').replace(from, to));
    expect(planImport(files).steps).toHaveLength(1);
    expect(() => planImport(changed('messages.jsonl', '"a"', '"c"'))).toThrow(
      'line 1: sha256: it belongs to messages that differ',
    );
    expect(() => planImport(changed('context/palimpsest.jsonl', '"seq":1', '"seq":2'))).toThrow('line 2: step.seq');
    expect(() => planImport(changed('context/palimpsest.jsonl', '"changes":{}', '"changes":{"pin":["x"]}'))).toThrow(
      'no object "x"',
    );
    expect(() => planImport(changed('context/palimpsest.jsonl', '"turn":1', '"turn":7'))).toThrow(
      /line 2: step: .*opens turn 7/,
    );
    const late =
      changed('context/palimpsest.jsonl', '"at":1,', '"at":253402300800000,').get('context/palimpsest.jsonl') ?? '';
    expect(fileFindings('context/palimpsest.jsonl', late)).toMatchObject([{ line: 2, field: 'step.at' }]);
  });

  test('accepts at most 10,000 calls without results', () => {
    const call = (n: number): string => {
      const calls = [{ id: `c${n}`, name: 'ls', arguments: {} }];
      return `${JSON.stringify({ role: 'assistant', content: '', tool_calls: calls })}\n`;
    };
    const waiting = (count: number) =>
      planImport(new Map([['messages.jsonl', Array.from({ length: count }, (_, n) => call(n)).join('')]]));
    expect(waiting(10_000).open).toHaveLength(10_000);
    expect(() => waiting(10_001)).toThrow(
      expect.objectContaining({
        code: 'too-large',
        message: expect.stringMatching(/^10001 calls .* at most 10000 .*leave out.*nothing was changed$/),
      }),
    );
  });
});
