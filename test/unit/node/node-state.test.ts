import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { openDataFolder } from '../../../src/node/data-folder.js';
import {
  countUsers,
  judgeLiveness,
  type NodeState,
  readState,
  registerUser,
  removeState,
  writeState,
} from '../../../src/node/node-state.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const state: NodeState = {
  format: 1,
  phase: 'ready',
  supervisor: { pid: 10, started: 'a' },
  jvm: { pid: 11, started: 'b' },
  address: { kind: 'unix', socketPath: '/run/x.sock' },
  profile: 'memory',
  version: '1.24.3',
  startedAt: '2026-01-01T00:00:00.000Z',
  restarts: 0,
  frontExit: null,
  failure: null,
};

describe('the state file', () => {
  test('reads back as written, by its owner alone', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'node.json');
      await writeState(path, state);
      expect(await readState(path)).toEqual(state);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
    }));

  test.each(['', '{"format":1', '{"format":2}', 'null', JSON.stringify({ ...state, phase: 'unheard-of' })])(
    'is invalid as %j',
    (text) =>
      withTemporaryFolder(async (dir) => {
        const path = join(dir, 'node.json');
        await writeFile(path, text);
        expect(await readState(path)).toBeUndefined();
      }),
  );

  test('is absent if the file is missing', async () => {
    expect(await readState('/nonexistent/node.json')).toBeUndefined();
  });

  test('is removed if it is our own or broken, but not if it is a successor’s', () =>
    withTemporaryFolder(async (dir) => {
      const path = join(dir, 'node.json');
      await writeState(path, state);
      await removeState(path, { pid: 10, started: 'earlier' });
      expect(await readState(path)).toEqual(state);
      await removeState(path, state.supervisor);
      expect(await readState(path)).toBeUndefined();
      await writeFile(path, 'broken');
      await removeState(path, state.supervisor);
      await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' });
    }));
});

describe('living processes according to a state', () => {
  test.each([
    [state, { supervisor: true, jvm: true }, 'supervised'],
    [{ ...state, phase: 'restarting', jvm: null } as const, { supervisor: true, jvm: false }, 'supervised'],
    [state, { supervisor: false, jvm: true }, 'orphaned'],
    [state, { supervisor: false, jvm: false }, 'none'],
    [{ ...state, phase: 'failed', jvm: null } as const, { supervisor: true, jvm: false }, 'none'],
    [undefined, { supervisor: false, jvm: false }, 'none'],
  ])('case %#', (given, alive, kind) => {
    expect(judgeLiveness(given, alive).kind).toBe(kind);
  });
});

describe('the users of a node', () => {
  test('count each registration once, until it is removed', () =>
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

  test('exclude a dead process and a broken file', () =>
    withTemporaryFolder(async (dir) => {
      const folder = await openDataFolder(dir);
      await writeFile(join(folder.usersDir, 'dead.json'), JSON.stringify({ pid: process.pid, started: 'earlier' }));
      await writeFile(join(folder.usersDir, 'broken.json'), '{');
      expect(await countUsers(folder)).toBe(0);
    }));
});
