import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openLogFile, readLogTail } from '../../../src/node/log-file.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

describe('the log of a node', () => {
  test('rotates at its size and keeps a few older files', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'node.log');
      const log = openLogFile(path, { maxBytes: 10, kept: 2 });
      for (const line of ['first line', 'second line', 'third line', 'fourth line', 'fifth line'])
        log.write(`${line}\n`);
      log.close();
      log.close();
      expect((await readdir(dir)).sort()).toEqual(['node.log', 'node.log.1', 'node.log.2']);
      expect(await readFile(path, 'utf8')).toBe('fifth line\n');
      expect(await readFile(`${path}.1`, 'utf8')).toBe('fourth line\n');
      expect(await readFile(`${path}.2`, 'utf8')).toBe('third line\n');
    }));

  test('continues when it is reopened', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'node.log');
      for (const line of ['a\n', 'b\n']) {
        const log = openLogFile(path);
        log.write(line);
        log.close();
      }
      expect(await readFile(path, 'utf8')).toBe('a\nb\n');
    }));

  test('has the last lines in its tail, also of a long file', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'node.log');
      expect(await readLogTail(path, 3)).toBeUndefined();
      await writeFile(path, 'a\nb\nc\nd\n');
      expect(await readLogTail(path, 2)).toBe('c\nd');
      expect(await readLogTail(path, 9)).toBe('a\nb\nc\nd');
      await writeFile(path, `${'x'.repeat(3_000_000)}\nlast\n`);
      expect(await readLogTail(path, 1)).toBe('last');
    }));
});
