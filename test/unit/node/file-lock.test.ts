import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { lockHolder, withLock } from '../../../src/node/file-lock.js';
import { identifySelf } from '../../../src/process/process-identity.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

describe('the start lock', () => {
  test('one holder at a time, and nothing is left of it', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'start.lock');
      let inside = 0;
      let most = 0;
      const enter = (): Promise<void> =>
        withLock(path, {}, async () => {
          inside += 1;
          most = Math.max(most, inside);
          await new Promise((resolve) => setImmediate(resolve));
          inside -= 1;
        });
      await Promise.all(Array.from({ length: 8 }, enter));
      expect(most).toBe(1);
      expect(await readdir(dir)).toEqual([]);
    }));

  test('the holder is known while it holds, and the lock is free after an error', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'start.lock');
      const failing = withLock(path, {}, async () => {
        expect((await lockHolder(path))?.pid).toBe(process.pid);
        throw new Error('inside');
      });
      await expect(failing).rejects.toThrow('inside');
      expect(await lockHolder(path)).toBeUndefined();
    }));

  test.each([
    ['of a dead process', async () => JSON.stringify({ pid: 2 ** 22 + 1, started: 'x', token: 't' })],
    ['of an earlier process with this pid', async () => JSON.stringify({ ...(await identifySelf()), started: 'earlier', token: 't' })],
    ['that is empty', async () => ''],
    ['that is cut off', async () => '{"pid": 12'],
  ])('a lock %s is taken over', (_name, content) =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'start.lock');
      await writeFile(path, await content());
      expect(await lockHolder(path)).toBeUndefined();
      expect(await withLock(path, {}, async () => 'done')).toBe('done');
      expect(await readdir(dir)).toEqual([]);
    }),
  );

  test('waiting for a living holder ends with the limit, or when the caller gives up', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'start.lock');
      const self = await identifySelf();
      await writeFile(path, JSON.stringify({ ...self, token: 'other' }));
      const waits: number[] = [];
      const limited = withLock(path, { limitMs: 60, onWait: (pid) => waits.push(pid) }, async () => 'never');
      await expect(limited).rejects.toMatchObject({ code: 'locked', message: expect.stringContaining(String(self.pid)) });
      expect(waits).toEqual([self.pid]);
      const abort = new AbortController();
      const aborted = withLock(path, { signal: abort.signal }, async () => 'never');
      abort.abort();
      await expect(aborted).rejects.toMatchObject({ code: 'aborted' });
    }));
});
