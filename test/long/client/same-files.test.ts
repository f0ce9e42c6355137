import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { countRequests, mentions, wholeRead } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { callReport, TrackedProject } from '../../support/tracked-project.js';

const FILES = 50;
const LIMIT_MS = 60_000;

describe('sessions on the same new files', () => {
  let project: TrackedProject;
  beforeEach(async () => {
    project = await TrackedProject.create();
  });
  afterEach(() => project.close());

  const newFiles = async (round: number): Promise<readonly string[]> => {
    const names = Array.from({ length: FILES }, (_, i) => `${round}-${i}.ts`);
    await Promise.all(names.map((name) => writeFile(project.file(name), `// ${name}\n`)));
    return names;
  };
  const readsEach = async (client: ContextClient, session: ContextSession, names: readonly string[]): Promise<void> => {
    for (const name of names) await session.recordCall(callReport({ readings: [await wholeRead(client, name)] }));
  };
  const listsAll = async (client: ContextClient, session: ContextSession, names: readonly string[]): Promise<void> => {
    await session.recordCall(callReport({ tool: 'ls', mentions: await mentions(client, names) }));
  };
  const expectWhole = async (client: ContextClient, ...sessions: readonly ContextSession[]): Promise<void> => {
    for (const session of sessions) {
      expect(await session.isDelivered(LIMIT_MS)).toBe(true);
      expect(session.isLost).toBe(false);
      expect(await verifySession(await client.delivered(), session.id)).toMatchObject({ ok: true });
    }
  };

  test('of one client write each step in one transaction, with any mixture of listings and reads', async () => {
    const client = await project.open({ track: false });
    const sessions = await Promise.all([1, 2, 3].map(() => client.openSession()));
    const [lister, reader, second] = sessions as [ContextSession, ContextSession, ContextSession];
    for (let round = 0; round < effort(3, 20); round++) {
      const names = await newFiles(round);
      // Waits for a step page, which a client writes after a hundred steps and which is not
      // counted.
      await expectWhole(client, ...sessions);
      const { requests } = await countRequests(async () => {
        await Promise.all([
          readsEach(client, reader, names),
          listsAll(client, lister, names),
          listsAll(client, second, names.slice(5)),
        ]);
        await client.backpressure(0, LIMIT_MS);
      });
      expect(requests['/_xtdb/submit-tx']).toBe(FILES + 2);
    }
    await expectWhole(client, ...sessions);
    expect(await client.close()).toEqual({ unflushed: 0 });
  });

  test('of two clients leave nothing acknowledged undelivered', async () => {
    const client = await project.open({ track: false });
    const other = await project.open({ track: false, dataDir: project.file('.other') });
    const [lister, reader] = [await client.openSession(), await other.openSession()];
    for (let round = 0; round < effort(2, 10); round++) {
      const names = await newFiles(round);
      await Promise.all([readsEach(other, reader, names), listsAll(client, lister, names)]);
    }
    await expectWhole(client, lister);
    await expectWhole(other, reader);
    for (const one of [client, other]) expect(await one.close()).toEqual({ unflushed: 0 });
  });
});
