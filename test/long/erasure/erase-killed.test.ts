import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createContextClient, stopNode } from '../../../src/index.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { effort } from '../../support/effort.js';
import { foundIn } from '../../support/every-byte.js';
import { runCli, startCli } from '../../support/run-cli.js';

/** `ERASE_KILLS=50` kills so many orders. */
const KILLS = Number(process.env.ERASE_KILLS ?? effort(1, 2));
/** An order takes some seconds on a free machine. */
const LATEST_MS = 6_000;

const secretOf = (round: number): string => `greengage jelly of round ${round}`;

describe('an order that is killed at a random point', () => {
  let folder: string;
  let dataDir: string;
  const json = async (...args: readonly string[]) =>
    JSON.parse((await runCli([...args, '--data', dataDir, '--json'])).stdout);

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-erase-killed-')));
    dataDir = join(folder, 'data');
    const opened = await createContextClient({ dataDir, roots: [folder], cwd: folder });
    for (let round = 0; round <= KILLS; round++) {
      const session = await opened.client.openSession({ id: `round-${round}` });
      await session.reportMessage({ role: 'user', text: `${secretOf(round)} `.repeat(150) });
      await session.reportMessage({ role: 'user', text: secretOf(round) });
      await session.assemble({ deliver: 'library' });
      expect(await session.isDelivered(60_000)).toBe(true);
      await session.close();
    }
    await opened.close();
  });

  afterAll(async () => {
    await stopNode(dataDir);
    await rm(folder, { recursive: true, force: true });
  });

  test('goes on, leaves no byte, and the sessions that stay verify', async () => {
    for (let round = 0; round < KILLS; round++) {
      const session = `round-${round}`;
      await json('erase', '--session', session, '--plan');
      const order = ['erase', '--session', session, '--apply', '--reason', 'a kill', '--data', dataDir, '--json'];
      const { child, result } = startCli(order);
      await Promise.race([delay(Math.random() * LATEST_MS), result]);
      child.kill('SIGKILL');
      const status = await nodeStatus(dataDir, process.env);
      const pid = 'pid' in status ? status.pid : undefined;
      if (round % 2 === 1 && pid !== null && pid !== undefined) process.kill(pid, 'SIGKILL');
      await result;
      // An order that was recorded goes on; one that was not has changed nothing.
      await json('erase', '--resume');
      expect(existsSync(join(dataDir, 'erasures', 'pending.json'))).toBe(false);
      const { error } = await json('log', session);
      if (error === undefined) expect(await json(...order.slice(0, -3))).toMatchObject({ sessions: [session] });
      expect((await json('log', session)).error).toMatchObject({ code: 'erased' });
      expect(await json('verify', `round-${KILLS}`)).toMatchObject({ ok: true });
    }
    await stopNode(dataDir);
    const gone = Array.from({ length: KILLS }, (_, round) => `${secretOf(round)} `);
    expect(await foundIn(dataDir, [...gone, secretOf(0)])).toEqual([]);
    expect(await foundIn(dataDir, [secretOf(KILLS)])).not.toEqual([]);
  });
});
