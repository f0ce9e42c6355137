import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { SteeredFile, type SteeredState, setSteered } from '../../../src/host/steered-sessions.js';
import { sessionId } from '../../../src/objects/ids.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const STATE: SteeredState = { on: true, tidied: 0, steered: false, firstCalls: [] };

describe('the file about a steered session', () => {
  test('is read again after each change, and only then', () =>
    withTemporaryFolder(async (dataDir) => {
      const session = sessionId('s-1');
      const file = new SteeredFile(dataDir, session);
      expect(await file.state()).toBeUndefined();
      await setSteered(dataDir, session, STATE);
      const first = await file.state();
      expect(first).toMatchObject(STATE);
      expect(await file.state()).toBe(first);
      // Two changes of the same size, one directly after the other.
      for (const tidied of [1, 2]) {
        await setSteered(dataDir, session, { ...STATE, tidied });
        expect(await file.state()).toMatchObject({ tidied });
      }
      await rm(join(dataDir, 'gateway', 'steered'), { recursive: true });
      expect(await file.state()).toBeUndefined();
    }));
});
