/**
 * The benchmark. Compares a call with the public filesystem server, with a bare transaction of the
 * same documents, and with the bare file. Also measures starts, storage, memory and assemblies.
 * Prints Markdown and writes JSON to bench/results. Asserts nothing.
 */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { measureAssembling } from './cases/assembling.js';
import { measureCalls } from './cases/calls.js';
import { measureCluster } from './cases/cluster.js';
import { measureHistory } from './cases/history.js';
import { measureKnown, measureMany, measureQueries } from './cases/large.js';
import { measureLeftBehind } from './cases/left-behind.js';
import { measureListing } from './cases/listing.js';
import { measureFolder, measureHttp } from './cases/load.js';
import { measureLoop } from './cases/loop.js';
import { measureMemory } from './cases/memory.js';
import { measurePage } from './cases/page.js';
import { measureReading, type Readers } from './cases/reading.js';
import { measureReplaying } from './cases/replay.js';
import { measureResuming } from './cases/resuming.js';
import { measureStarting } from './cases/starting.js';
import { measureStoring } from './cases/storing.js';
import { measureTurns } from './cases/turns.js';
import { measureVerbsAlone } from './cases/verbs.js';
import { measureWatching } from './cases/watching.js';
import { describeMachine } from './machine.js';
import { toMarkdown } from './markdown.js';
import { keepResults, writeReport } from './report.js';
import type { CaseResult } from './results.js';
import { FULL, QUICK } from './sizes.js';
import { benchFolder, Workshop } from './workshop.js';
import { LogClient } from './written-documents.js';

const USAGE = `npm run bench -- [flags]

  --quick            under a minute, too few rounds for figures to be quoted

  --only CASES       separated by commas; default: all but page and cluster

                     read, ls, start, left, storage, history, verbs, known, many, queries, http, folder, loop,
                     memory, calls, turns, assemble, resume, watch, replay

                     page needs Chromium; cluster starts PostgreSQL and Kafka and writes
                     CLUSTER_TRANSACTIONS (100,000) of them

  --report FILE      writes the figures into a report, between its marks if it has them

  --cpu-prof FOLDER  makes our servers write CPU profiles there; slows them down`;

const CASES = [
  'read',
  'ls',
  'start',
  'left',
  'calls',
  'turns',
  'assemble',
  'storage',
  'memory',
  'resume',
  'watch',
  'replay',
  'history',
  'verbs',
  'known',
  'many',
  'queries',
  'http',
  'folder',
  'loop',
  'page',
  'cluster',
] as const;
/** Cases that need additional programs. They run only if named. */
const NAMED_ONLY: ReadonlySet<string> = new Set(['page', 'cluster']);
type Case = (typeof CASES)[number];

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: CASES.filter((name) => !NAMED_ONLY.has(name)).join(',') },
    report: { type: 'string' },
    'cpu-prof': { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

async function openReaders(workshop: Workshop, dataDir: string): Promise<Readers & { close(): Promise<void> }> {
  const node = await workshop.node(dataDir);
  const ours = workshop.ours(dataDir, 'bench-ours');
  const whole = workshop.ours(dataDir, 'bench-whole', ['--max-output-chars', '1000000']);
  const peer = workshop.peer();
  await Promise.all([ours.initialize(), whole.initialize(), peer.initialize()]);
  const client = await workshop.client(node, dataDir);
  const session = await client.openSession({ id: 'bench-library' });
  const xtdb = new LogClient(node.address);
  const library = { client, session, signal: new AbortController().signal, turnRef: 'bench' };
  const close = async (): Promise<void> => {
    await Promise.all([ours.close(), whole.close(), peer.close(), xtdb.close()]);
  };
  return { ours, whole, peer, library, xtdb, close };
}

/** The figures of all cases, and the names of the failed ones. */
type Measured = CaseResult & { readonly failed: readonly string[] };

async function measure(workshop: Workshop, only: ReadonlySet<string>): Promise<Measured> {
  const dataDir = workshop.dataDir('data');
  workshop.tell('starting the node');
  const readers = await openReaders(workshop, dataDir);
  const table: Readonly<Record<Case, () => Promise<CaseResult>>> = {
    read: () => measureReading(workshop, readers),
    ls: () => measureListing(workshop, readers),
    start: () => measureStarting(workshop, dataDir),
    left: () => measureLeftBehind(workshop),
    calls: () => measureCalls(workshop, readers, dataDir),
    turns: () => measureTurns(workshop, readers, dataDir),
    assemble: () => measureAssembling(workshop, readers, dataDir),
    storage: () => measureStoring(workshop),
    history: () => measureHistory(workshop),
    verbs: () => measureVerbsAlone(workshop),
    known: () => measureKnown(workshop),
    many: () => measureMany(workshop),
    queries: () => measureQueries(workshop),
    http: () => measureHttp(workshop),
    folder: () => measureFolder(workshop),
    loop: () => measureLoop(workshop, dataDir),
    memory: () => measureMemory(workshop),
    resume: () => measureResuming(workshop),
    watch: () => measureWatching(workshop),
    replay: () => measureReplaying(workshop),
    page: () => measurePage(workshop),
    cluster: () => measureCluster(workshop),
  };
  const found: CaseResult[] = [];
  const failed: string[] = [];
  for (const name of CASES.filter((one) => only.has(one))) {
    try {
      found.push(await table[name]());
    } catch (error) {
      // A failed case has no figures. The other cases still run.
      workshop.tell(`the case ${name} failed: ${error instanceof Error ? error.stack : String(error)}`);
      failed.push(name);
    }
  }
  await readers.close();
  return { cases: found.flatMap(({ cases }) => cases), goals: found.flatMap(({ goals }) => goals), failed };
}

async function main(): Promise<void> {
  const only = new Set(flags.only.split(','));
  const unknown = [...only].filter((name) => !(CASES as readonly string[]).includes(name));
  if (flags.help || unknown.length > 0) {
    console.log(unknown.length > 0 ? `There is no case ${unknown.join(', ')}.\n${USAGE}` : USAGE);
    process.exitCode = unknown.length > 0 ? 1 : 0;
    return;
  }
  const began = performance.now();
  const tell = (message: string): void =>
    console.error(`[${((performance.now() - began) / 1_000).toFixed(1).padStart(5)} s] ${message}`);
  const machine = describeMachine(process.argv.slice(2));
  const profiles = flags['cpu-prof'];
  const workshop = await Workshop.open(
    flags.quick ? QUICK : FULL,
    tell,
    profiles === undefined ? undefined : resolve(profiles),
  );
  try {
    const result = await measure(workshop, only);
    const figures = toMarkdown(machine, result, (performance.now() - began) / 1_000);
    console.log(figures);
    tell(`kept in ${await keepResults(join(benchFolder, 'results'), machine, result)}`);
    if (flags.report !== undefined) await writeReport(resolve(flags.report), machine, figures);
    if (result.failed.length > 0) {
      tell(`FAILED, without figures: ${result.failed.join(', ')}`);
      process.exitCode = 1;
    }
  } finally {
    await workshop.close();
  }
}

await main();
