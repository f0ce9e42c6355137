import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openDataFolder } from '../../../src/node/data-folder.js';
import { countUsers, registerUser } from '../../../src/node/users.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

describe('the users of a node', () => {
  test('each registration counts until it is removed, once', () =>
    withTemporaryFolder(async (dir) => {
      const folder = await openDataFolder(dir);
      const first = await registerUser(folder);
      const second = await registerUser(folder);
      expect(await countUsers(folder)).toBe(2);
      await first.remove();
      await first.remove();
      expect(await countUsers(folder)).toBe(1);
      await second.remove();
      expect(await countUsers(folder)).toBe(0);
    }));

  test('a dead process and a broken file are no users', () =>
    withTemporaryFolder(async (dir) => {
      const folder = await openDataFolder(dir);
      await writeFile(join(folder.usersDir, 'dead.json'), JSON.stringify({ pid: process.pid, started: 'earlier' }));
      await writeFile(join(folder.usersDir, 'broken.json'), '{');
      expect(await countUsers(folder)).toBe(0);
    }));
});
