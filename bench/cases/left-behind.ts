import { setTimeout as delay } from 'node:timers/promises';
import { stopNode } from '../../src/index.js';
import { inspectJournals } from '../../src/journal/journals.js';
import { nodePhase } from '../../src/node/node-status.js';
import { median } from '../quantile.js';
import type { CaseResult } from '../results.js';
import type { Workshop } from '../workshop.js';

/** Calls of the killed agent. */
const CALLS = 10;
const LOOK_MS = 20;

async function waitFor(what: string, limitMs: number, holds: () => Promise<boolean>): Promise<number> {
  for (const end = performance.now() + limitMs; !(await holds()); await delay(LOOK_MS)) {
    if (performance.now() > end) throw new Error(`${what}: not after ${limitMs} ms`);
  }
  return performance.now();
}

/**
 * Kills an agent while its node starts. Returns the milliseconds from the time the node is ready
 * until it has the agent's steps.
 */
async function leftBehind(workshop: Workshop, round: number): Promise<number> {
  const dataDir = workshop.dataDir(`left-${round}`);
  const limitMs = workshop.sizes.limitMs * 3;
  const server = workshop.ours(dataDir, undefined);
  await server.initialize();
  await waitFor('the node is starting', limitMs, async () => (await nodePhase(dataDir)) !== undefined);
  for (let i = 0; i < CALLS; i++) await server.call('write', { path: `left-${round}-${i}.txt`, content: `text ${i}` });
  process.kill(server.pid, 'SIGKILL');
  const pending = async (): Promise<number> =>
    (await inspectJournals(dataDir)).reduce((sum, journal) => sum + journal.pending, 0);
  if ((await nodePhase(dataDir)) !== 'starting' || (await pending()) < CALLS)
    throw new Error('the node was ready before the agent was killed');
  const ready = await waitFor('the node is ready', limitMs, async () => (await nodePhase(dataDir)) === 'ready');
  const delivered = await waitFor('what the agent left is delivered', limitMs, async () => (await pending()) === 0);
  await stopNode(dataDir);
  return delivered - ready;
}

/** Measures the time from a ready node until it has the steps of a killed agent. */
export async function measureLeftBehind(workshop: Workshop): Promise<CaseResult> {
  workshop.tell('what a dead process left');
  const ms: number[] = [];
  for (let round = 0; round < workshop.sizes.left; round++) ms.push(await leftBehind(workshop, round));
  const most = Math.max(...ms);
  return {
    cases: [
      {
        kind: 'counted',
        title: `Calls of a killed agent (${CALLS}), from the moment at which the node is ready, ${ms.length} rounds`,
        rows: [
          { name: 'until the database has it: median', value: median(ms), unit: 'ms' },
          { name: 'most', value: most, unit: 'ms' },
        ],
      },
    ],
    goals: [
      { what: 'what a dead process left, after the node is ready, most', measured: most, bar: 1_000, unit: 'ms' },
    ],
  };
}
