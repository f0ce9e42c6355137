import { existsSync } from 'node:fs';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createContextClient, stopNode } from '../../../src/index.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { wholeRead } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { foundIn } from '../../support/every-byte.js';
import { HarnessApi } from '../../support/harness-api.js';
import { type Serve, startServe } from '../../support/mcp-clients.js';
import { runCli, startCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

const asked = process.env.ERASE_KILLS;
/** Number of killed orders. `ERASE_KILLS=50` sets it, and then orders of each kind take turns. */
const KILLS = Number(asked ?? effort(1, 2));
/**
 * Expected duration of the first order, as on an idle machine. Later rounds use the last measured
 * duration.
 */
const FIRST_MS = 6_000;
/** Pause between two turns of the running session, so that it stays small. */
const PAUSE_MS = 100;
const DAY_MS = 86_400_000;
/** Each later session is a day younger, so that an order by age selects one session. */
const daysAgo = (round: number): number => Date.now() - (KILLS + 10 - round) * DAY_MS;
const KINDS = ['session', 'object', 'retention', 'before', 'text'] as const;
const kindOf = (round: number): (typeof KINDS)[number] =>
  asked === undefined ? 'session' : (KINDS[round % KINDS.length] ?? 'session');

/** Returns a name with two digits, so that no name is a prefix of another. */
const nameOf = (round: number): string => `round-${String(round).padStart(2, '0')}`;
const secretOf = (round: number): string => `greengage jelly of ${nameOf(round)}`;

describe('an order that is killed at a random point', () => {
  let folder: string;
  let dataDir: string;
  /** The id of each round's file. */
  const files: string[] = [];
  const json = async (...args: readonly string[]) =>
    JSON.parse((await runCli([...args, '--data', dataDir, '--json'])).stdout);

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-erase-killed-')));
    dataDir = join(folder, 'data');
    for (let round = 0; round <= KILLS; round++) {
      const clock = (): number => (round === KILLS ? Date.now() : daysAgo(round));
      const opened = await createContextClient({ dataDir, roots: [folder], cwd: folder, clock });
      const { client } = opened;
      const session = await client.openSession({ id: nameOf(round) });
      await session.reportMessage({ role: 'user', text: 'a word of its own' });
      const content = `${secretOf(round)} `.repeat(150);
      await writeFile(join(folder, `${round}.txt`), content);
      files.push((await client.files.locate(`${round}.txt`)).id);
      const readings = [await wholeRead(client, `${round}.txt`)];
      const call = { tool: 'read', args: { path: `${round}.txt` }, status: 'ok' as const, content };
      await session.recordCall({ ...call, readings, answer: () => content });
      if (kindOf(round) !== 'object') await session.reportMessage({ role: 'user', text: secretOf(round) });
      await session.assemble({ deliver: 'library' });
      expect(await session.isDelivered(60_000)).toBe(true);
      await opened.close();
    }
  });

  let serve: Serve | undefined;

  afterAll(async () => {
    await serve?.kill();
    await stopNode(dataDir);
    await rm(folder, { recursive: true, force: true });
  });

  /** Returns the flags that select a round's session or its secret. */
  async function flagsOf(round: number): Promise<readonly string[]> {
    const kind = kindOf(round);
    if (kind === 'session') return ['--session', nameOf(round)];
    if (kind === 'text') return ['--text', secretOf(round)];
    if (kind === 'object') return ['--object', files[round] ?? ''];
    if (kind === 'before') return ['--before', new Date(daysAgo(round) + DAY_MS / 2).toISOString()];
    const kept = Math.floor((Date.now() - daysAgo(round)) / DAY_MS) - 1;
    await json('retain', '--rule', `${nameOf(round)}=${kept + 1}`);
    return ['--retention'];
  }

  /** Starts a session of another process. `goOn` adds a turn, also while the node is away. */
  async function sessionBeside() {
    serve = await startServe(['--data', dataDir, '--profile', 'rocksdb'], folder);
    const api = new HarnessApi(serve);
    const { id } = await api.call('openSession', undefined, { system_prompt: 'You go on.' });
    let turns = 0;
    const goOn = async (): Promise<void> => {
      await api.call('beginTurn', id, { messages: [{ role: 'user', content: `turn ${++turns}` }] });
    };
    const close = async (): Promise<number> => {
      await api.close();
      await serve?.kill();
      return turns;
    };
    return { id, goOn, close };
  }

  test('is completed and leaves no byte; all other sessions verify, including a running one', async () => {
    const beside = await sessionBeside();
    let orderMs = FIRST_MS;
    for (let round = 0; round < KILLS; round++) {
      const session = nameOf(round);
      const flags = await flagsOf(round);
      const plan = await json('erase', ...flags, '--plan');
      expect(plan).toMatchObject({ documents: expect.any(Array) });
      expect(plan.documents.length).toBeGreaterThan(0);
      const order = ['erase', ...flags, '--apply', '--reason', 'a kill', '--data', dataDir, '--json'];
      const { child, result } = startCli(order);
      let isWaiting = true;
      const kill = Promise.race([delay(Math.random() * orderMs), result]).finally(() => {
        isWaiting = false;
      });
      while (isWaiting) await Promise.race([beside.goOn().then(() => delay(PAUSE_MS)), kill]);
      child.kill('SIGKILL');
      const status = await nodeStatus(dataDir, process.env);
      const pid = 'pid' in status ? status.pid : undefined;
      if (round % 2 === 1 && pid !== null && pid !== undefined) process.kill(pid, 'SIGKILL');
      const { code } = await result;
      const pending = join(dataDir, 'erasures', 'pending.json');
      const point = code === 0 ? 'done' : existsSync(pending) ? 'recorded' : 'not recorded';
      if (existsSync(pending)) {
        const { findings } = await json('doctor', '--no-agents');
        // A restarted node may have completed the order meanwhile.
        if (existsSync(pending))
          expect(findings).toContainEqual(expect.objectContaining({ code: 'erasure-unfinished' }));
        // A recorded order continues when a node starts. An order that was not recorded has changed
        // nothing.
        await stopNode(dataDir);
        await json('node', 'start');
        await until(
          () => existsSync(pending),
          (isPending) => !isPending,
        );
        await json('erase', '--resume');
      }
      const verdict = async () => {
        const { sessions, error } = await json('verify', session);
        const isDone = error?.code === 'erased' || sessions?.[0]?.erased !== undefined;
        return { round, kind: kindOf(round), point, ...(isDone ? { isDone } : { sessions, error }) };
      };
      if (!('isDone' in (await verdict()))) {
        const began = performance.now();
        expect(await json(...order.slice(0, -3))).toMatchObject({ reason: 'a kill' });
        orderMs = performance.now() - began;
      }
      expect(await verdict()).toMatchObject({ isDone: true });
      if (asked !== undefined) process.stderr.write(`${JSON.stringify({ round, kind: kindOf(round), point })}\n`);
      if (round % 10 === 0) expect(await json('verify', nameOf(KILLS))).toMatchObject({ ok: true });
      await beside.goOn();
      await rm(join(folder, `${round}.txt`));
    }
    expect(await beside.close()).toBeGreaterThan(KILLS);
    const verified = await json('verify', '--all');
    expect(verified).toMatchObject({ ok: true });
    expect(verified.sessions.map(({ session }: { session: string }) => session)).toContain(beside.id);
    await stopNode(dataDir);
    const gone = Array.from({ length: KILLS }, (_, round) => `${secretOf(round)} `);
    expect(await foundIn(dataDir, [...gone, secretOf(0)])).toEqual([]);
    expect(await foundIn(dataDir, [secretOf(KILLS)])).not.toEqual([]);
  });
});
