import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ContextClient } from '../../src/client/session/context-client.js';
import type { ContextSession } from '../../src/client/session/context-session.js';
import { NodeUse } from '../../src/host/open-store.js';
import { hashText } from '../../src/objects/hashes.js';
import { isLoss, SessionError } from '../../src/session/errors.js';
import { defined } from '../../src/values/defined.js';
import { XtdbError } from '../../src/xtdb/errors.js';
import type { FoundSession, Line } from './acknowledged.js';
import { type Agent, operate, readFileWhole } from './operations.js';
import { Random } from './random.js';
import { FILE_NAMES, type WorkloadPlan } from './workload-plan.js';

/** Maximum time for the node to return while a session is opened. */
const OPEN_LIMIT_MS = 90_000;

/** Longer than any process of the workload lives. */
const LINGER_MS = 600_000;

// A failure is reported with all its causes.
Error.stackTraceLimit = 50;

const plan = JSON.parse(process.argv[2] ?? '{}') as WorkloadPlan;
const { openLimitMs = OPEN_LIMIT_MS } = plan;
const notices: string[] = [];
const say = (line: Line): void => appendFileSync(plan.linesFile, `${JSON.stringify(line)}\n`);

const node = new NodeUse(
  { dataDir: plan.dataDir, profile: 'rocksdb', idleExitSeconds: 600 },
  { nodeUrl: plan.nodeUrl, nodeToken: undefined },
);

const awayOnly = (error: unknown): boolean =>
  error instanceof XtdbError || (error instanceof SessionError && error.code === 'node-unavailable');

/** Opens or reads a session. Retries during an outage of the node, as a harness would. */
async function untilThere<T>(work: () => Promise<T>): Promise<T> {
  const until = Date.now() + openLimitMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!awayOnly(error) || Date.now() > until) throw error;
      await delay(50);
    }
  }
}

async function found(client: ContextClient, { id, state }: ContextSession): Promise<FoundSession> {
  const since = plan.since[id] ?? 0;
  const steps = await (await client.store.now()).steps(id);
  const later = steps.slice(since).map(({ seq, call, message }) => ({
    seq,
    ...(call === undefined ? {} : { call: call.id }),
    ...(call?.answer === undefined ? {} : { answer: call.answer.sha256 }),
    ...(message === undefined ? {} : { message: hashText(message.text) }),
  }));
  return { session: id, seq: state.seq, since, steps: later };
}

async function work(agent: Agent): Promise<void> {
  try {
    for (;;) {
      await operate(agent);
      await delay(agent.random.between(0, plan.pauseMs));
    }
  } catch (error) {
    if (plan.takeOver !== true || !isLoss(error)) throw error;
    // The process stays alive, because it delivers what it acknowledged.
    await delay(LINGER_MS);
  }
}

async function finish(client: ContextClient, agents: readonly Agent[]): Promise<void> {
  const [first] = agents;
  if (first !== undefined) for (const name of FILE_NAMES) await readFileWhole(first, name);
  const { unflushed } = await client.close();
  if (unflushed > 0) throw new Error(`${unflushed} steps were not flushed when the client closed`);
  await node.release();
}

async function main(): Promise<void> {
  const client = await ContextClient.create({
    address: () => node.address(),
    roots: [plan.root],
    cwd: plan.root,
    filesystemId: plan.filesystemId,
    dataDir: plan.dataDir,
    what: 'chaos workload',
    onNotice: (line) => notices.push(line),
  });
  const sessions = await Promise.all(
    plan.sessions.map((id) => untilThere(() => client.openSession({ id, ...defined({ takeOver: plan.takeOver }) }))),
  ).catch(async (error: unknown) => {
    if (plan.takeOver !== true || plan.finish || !isLoss(error)) throw error;
    // A later process took the session while this one opened it.
    await delay(LINGER_MS);
    return [];
  });
  const both = await Promise.all(sessions.map((session) => untilThere(() => found(client, session))));
  say({ kind: 'resumed', found: both, ms: Math.round(performance.now()), notices });
  process.stdout.write('open\n');
  const agents = sessions.map((session, i) => ({
    client,
    session,
    root: plan.root,
    say,
    random: new Random(plan.seed * 2 + i),
  }));
  if (plan.finish) return finish(client, agents);
  await Promise.all(agents.map(work));
}

await main().catch((error: unknown) => {
  say({
    kind: 'refused',
    what: 'workload',
    error: error instanceof Error ? `${error.name}: ${error.stack ?? error.message}` : String(error),
  });
  process.exitCode = 1;
});
// Work that waits for the node must not keep a failed process alive.
if (process.exitCode === 1) process.exit();
