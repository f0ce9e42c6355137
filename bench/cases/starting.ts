import { stopNode } from '../../src/index.js';
import { makeFiles, settleDisk } from '../fixtures.js';
import { type Contender, interleave } from '../interleave.js';
import { type CaseResult, medianOf } from '../results.js';
import type { StdioServer } from '../stdio-server.js';
import type { Workshop } from '../workshop.js';

const OURS = 'palimpsest mcp';
const PEER = 'server-filesystem';
const COLD = 'first read answered, node not running';
const NAMED = 'the same, in a session that is named and so has to be looked up first';

function starts(name: string, start: () => StdioServer): Contender {
  let running: StdioServer | undefined;
  return {
    name,
    // Stops the previous process, which is not timed.
    prepare: async () => {
      await running?.close();
      return async () => {
        running = start();
        await running.initialize({ begin: false });
        return {};
      };
    },
  };
}

async function coldStarts(workshop: Workshop, dataDir: string): Promise<CaseResult['cases'][number]> {
  const { coldStarts: count } = workshop.sizes;
  const paths = await makeFiles(`${workshop.files}/cold`, 'cold', count, { bytes: 1_000, lineLength: 80 });
  settleDisk();
  let running: StdioServer | undefined;
  const contender = (name: string, session: (round: number) => string | undefined): Contender => ({
    name,
    prepare: async (round) => {
      // Delivers acknowledged steps before the node stops.
      await running?.close();
      await stopNode(dataDir);
      return async () => {
        running = workshop.ours(dataDir, session(round));
        await running.initialize();
        const { bytes } = await running.call('read', { path: paths[round] ?? '' });
        return { bytes };
      };
    },
  });
  const contenders = [contender(COLD, () => undefined), contender(NAMED, (round) => `cold-${round}`)];
  const samples = await interleave(contenders, { warmUp: 0, measured: count, limitMs: workshop.sizes.limitMs });
  await running?.close();
  await stopNode(dataDir);
  return {
    kind: 'timed',
    title: 'From a cold start: process started, initialize, one file read and acknowledged while the node starts',
    remark:
      'The node is built already. The first start has an empty data folder, later ones find what the earlier wrote.',
    samples,
    yardsticks: [],
  };
}

/**
 * Measures the time from the start of a process to its answer to `initialize`. Without a running
 * node, also measures the time to the first read.
 */
export async function measureStarting(workshop: Workshop, nodeDir: string): Promise<CaseResult> {
  workshop.tell('initialize');
  const { initializes, limitMs } = workshop.sizes;
  const contenders = [starts(OURS, () => workshop.ours(nodeDir, 'bench-start')), starts(PEER, () => workshop.peer())];
  const samples = await interleave(contenders, { warmUp: 1, measured: initializes, limitMs });
  workshop.tell('cold start');
  const cold = await coldStarts(workshop, workshop.dataDir('cold-data'));
  return {
    cases: [{ kind: 'timed', title: 'initialize, from the start of the process', samples, yardsticks: [PEER] }, cold],
    goals: [
      { what: 'initialize answered', measured: medianOf(samples, OURS), bar: 250, unit: 'ms' },
      {
        what: 'first indexed read from a cold start',
        measured: cold.kind === 'timed' ? medianOf(cold.samples, COLD) : Number.NaN,
        bar: 1_000,
        unit: 'ms',
      },
    ],
  };
}
