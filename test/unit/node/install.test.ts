import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { changedFiles, installationKey, readFrontFiles } from '../../../src/node/front-files.js';
import { expiredEntries } from '../../../src/node/install.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const DAY = 86_400_000;
const now = 1_000 * DAY;
const entry = (name: string, daysAgo: number): { readonly name: string; readonly usedMs: number } => ({
  name,
  usedMs: now - daysAgo * DAY,
});
const current = 'aaaaaaaaaaaaaaaa';
const other = 'bbbbbbbbbbbbbbbb';
const draft = '.draft-0f8fad5b-d9cb-469f-a165-70867728950e';

describe('old installations in the cache', () => {
  test('are removed after more than a week without use, but never the current one', () => {
    expect(expiredEntries([entry(`node-${current}`, 400), entry(`node-${other}`, 8)], current, now)).toEqual([
      `node-${other}`,
    ]);
  });
  test('stay if they were used recently, because their node may still run', () => {
    expect(expiredEntries([entry(`node-${other}`, 6)], current, now)).toEqual([]);
  });
  test('include drafts of builds that died a day ago, but no fresh ones', () => {
    expect(expiredEntries([entry(draft, 2)], current, now)).toEqual([draft]);
    expect(expiredEntries([entry(draft, 0.5)], current, now)).toEqual([]);
  });
  test('do not include unknown files', () => {
    expect(
      expiredEntries([entry('node-x', 900), entry('notes.txt', 900), entry(`node-${other}.lock`, 900)], current, now),
    ).toEqual([]);
  });
});

const files = (entries: Readonly<Record<string, string>>): ReadonlyMap<string, Buffer> =>
  new Map(Object.entries(entries).map(([name, text]) => [name, Buffer.from(text)]));
const base = { java: '17', files: files({ 'pom.xml': 'a', 'src/front/main.clj': 'b' }) };

describe('the key of an installation', () => {
  test('depends only on the parts, in any order', () => {
    expect(installationKey(base)).toBe(
      installationKey({ java: '17', files: files({ 'src/front/main.clj': 'b', 'pom.xml': 'a' }) }),
    );
    expect(installationKey(base)).toMatch(/^[0-9a-f]{16}$/);
  });

  test.each([
    ['another Java', { ...base, java: '21' }],
    ['another library', { ...base, files: files({ 'pom.xml': 'a2', 'src/front/main.clj': 'b' }) }],
    ['another source', { ...base, files: files({ 'pom.xml': 'a', 'src/front/main.clj': 'b2' }) }],
    ['a renamed source', { ...base, files: files({ 'pom.xml': 'a', 'src/front/main2.clj': 'b' }) }],
    [
      'one more source',
      { ...base, files: files({ 'pom.xml': 'a', 'src/front/main.clj': 'b', 'src/front/more.clj': '' }) },
    ],
    ['text moved from one part to the next', { ...base, files: files({ 'pom.xml': 'as', 'rc/front/main.clj': 'b' }) }],
  ])('differs with %s', (_name, parts) => {
    expect(installationKey(parts)).not.toBe(installationKey(base));
  });

  test('differs for a changed source on disk, and not for an untouched copy', () =>
    withTemporaryFolder(async (dir) => {
      const front = join(dir, 'xtdb');
      await mkdir(join(front, 'src', 'front'), { recursive: true });
      await writeFile(join(front, 'pom.xml'), '<project/>');
      await writeFile(join(front, 'jars.sha256'), '');
      await writeFile(join(front, 'src', 'front', 'main.clj'), '(ns front.main)');
      const key = async (folder: string): Promise<string> =>
        installationKey({ java: '17', files: await readFrontFiles(folder) });
      const before = await key(front);
      await cp(front, join(dir, 'copy'), { recursive: true });
      expect(await key(join(dir, 'copy'))).toBe(before);
      await writeFile(join(front, 'src', 'front', 'main.clj'), '(ns front.main) ; changed');
      expect(await key(front)).not.toBe(before);
    }));
});

describe('checked files', () => {
  const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

  test('are named if a bit flips, one is missing or one is shorter', () =>
    withTemporaryFolder(async (dir) => {
      const bytes = Buffer.alloc(3_000_000, 'jar');
      const names = ['good.jar', 'flipped.jar', 'short.jar'];
      for (const name of names) await writeFile(join(dir, name), bytes);
      const hashes = new Map([...names, 'missing.jar'].map((name) => [name, sha256(bytes)]));
      expect(await changedFiles(dir, hashes)).toEqual(['missing.jar']);
      const flipped = Buffer.from(bytes);
      flipped.writeUInt8(flipped.readUInt8(2_000_000) ^ 1, 2_000_000);
      await writeFile(join(dir, 'flipped.jar'), flipped);
      await writeFile(join(dir, 'short.jar'), bytes.subarray(1));
      expect(await changedFiles(dir, hashes)).toEqual(['flipped.jar', 'short.jar', 'missing.jar']);
    }));

  test('include every library of the node', async () => {
    const lines = (await readFile('xtdb/jars.sha256', 'utf8')).trimEnd().split('\n');
    for (const line of lines) expect(line).toMatch(/^[0-9a-f]{64} {2}\S+\.jar$/);
    expect(lines.some((line) => line.endsWith('  xtdb-core-1.24.3.jar'))).toBe(true);
  });
});
