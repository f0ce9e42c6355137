import { readFile } from 'node:fs/promises';
import type { ToolContext } from '../../src/tools/tool.js';
import { makeFiles, settleDisk } from '../fixtures.js';
import { type Contender, interleave, type Outcome } from '../interleave.js';
import { type CaseResult, type CountedCase, type Goal, medianOf, type TimedCase } from '../results.js';
import { runTool } from '../run-tool.js';
import { residentMiB, type StdioServer } from '../stdio-server.js';
import type { Workshop } from '../workshop.js';
import { captureWrite, freshCopy, type LogClient, untilStored, type WrittenTransaction } from '../written-documents.js';

const OURS = 'palimpsest read';
const WHOLE = 'palimpsest read, whole text answered';
const LIBRARY = 'same tool in one process, no MCP, no journal';
const BARE = 'bare XTDB transaction of its documents';
const PEER = 'server-filesystem read_text_file';
const DISK = 'fs.readFile';

interface Size {
  readonly name: string;
  readonly mark: string;
  readonly bytes: number;
  readonly lineLength: number;
  readonly rounds: number;
  readonly goal: number;
  /** Whether the default answer is shorter than the file. */
  readonly cut: boolean;
}

/** All readers, set up once for all sizes. */
export interface Readers {
  readonly ours: StdioServer;
  /** Our server with its longest permitted answers. */
  readonly whole: StdioServer;
  readonly peer: StdioServer;
  readonly library: ToolContext;
  /** A separate connection to the node. */
  readonly xtdb: LogClient;
}

const WARM_UP = 3;
/** Maximum rounds for the parts of a call. */
const MOST_PARTS = 40;
/**
 * Pause before each call in milliseconds. An agent makes a call after its model's answer, when the
 * server has finished the previous call. Calls without pauses are measured separately, here and in
 * the case `calls`.
 */
const REST_MS = 40;

function sizesOf({ sizes: { reads } }: Workshop): readonly Size[] {
  return [
    { name: '1 KB', mark: 'small', bytes: 1_000, lineLength: 80, rounds: reads.small, goal: 1.5, cut: false },
    { name: '100 KB', mark: 'middle', bytes: 100_000, lineLength: 120, rounds: reads.middle, goal: 1, cut: true },
    // The longest permitted answer has a million characters and 2,000 lines, its header included.
    { name: '1 MB', mark: 'large', bytes: 998_000, lineLength: 520, rounds: reads.large, goal: 0.5, cut: true },
  ];
}

async function readOurs(server: StdioServer, path: string, mustBeWhole = false): Promise<Outcome> {
  const answer = await server.call('read', { path });
  const { palimpsest } = answer.result._meta as {
    readonly palimpsest: { readonly whole: boolean; readonly call: string };
  };
  if (mustBeWhole && !palimpsest.whole) throw new Error(`the answer for ${path} lacks a part of the text`);
  return { bytes: answer.bytes, call: palimpsest.call };
}

async function readHere(context: ToolContext, path: string): Promise<Outcome> {
  const { meta } = await runTool('read', { path }, context);
  return { call: String(meta.call) };
}

/** Returns the file that a contender reads in a round. */
type PathOf = (contender: string, round: number) => string;

/** A captured transaction, and the texts that a new copy of it replaces. */
interface Bare {
  readonly template: WrittenTransaction;
  readonly marks: readonly string[];
  readonly salt: string;
}

/**
 * Returns contenders that read one file per round. Each settles once the node has stored its call.
 */
function readsOf(
  { xtdb }: Readers,
  pathOf: PathOf,
): (name: string, read: (path: string) => Promise<Outcome>) => Contender {
  return (name, read) => ({
    name,
    prepare: async (round) => {
      const path = pathOf(name, round);
      return () => read(path);
    },
    settle: ({ call }) => untilStored(xtdb, call),
  });
}

/**
 * Returns one of our servers and the public server. A third contender's work in the node would take
 * CPU time from our calls.
 */
function serversOf(readers: Readers, name: typeof OURS | typeof WHOLE, pathOf: PathOf): readonly Contender[] {
  const { ours, whole, peer } = readers;
  const over = readsOf(readers, pathOf);
  return [
    over(name, name === OURS ? (path) => readOurs(ours, path) : (path) => readOurs(whole, path, true)),
    over(PEER, async (path) => ({ bytes: (await peer.call('read_text_file', { path })).bytes })),
  ];
}

/**
 * Returns the parts of a call as contenders: the same tool without a protocol, the transaction that
 * it writes, and the bare file.
 */
function partsOf(readers: Readers, pathOf: PathOf, { template, marks, salt }: Bare): readonly Contender[] {
  const { library, xtdb } = readers;
  const over = readsOf(readers, pathOf);
  return [
    over(LIBRARY, (path) => readHere(library, path)),
    {
      name: BARE,
      prepare: async (round) => {
        const ops = freshCopy(template, marks, `${salt}${round}`);
        return async () => {
          const { outcome } = await xtdb.execute(ops);
          if (outcome !== 'committed') throw new Error('the bare transaction was not committed');
          return {};
        };
      },
    },
    over(DISK, async (path) => {
      await readFile(path, 'utf8');
      return {};
    }),
  ];
}

/** A series of reads of one file size: its name, its files, and the transaction of one call. */
interface Reading {
  readonly title: string;
  readonly pathOf: PathOf;
  readonly bare: Bare;
}

/**
 * Times our server and our server with whole texts, each alternating with the public server. Then
 * times the parts of a call.
 */
async function readInTurns(
  { sizes }: Workshop,
  readers: Readers,
  size: Size,
  reading: Reading,
): Promise<readonly TimedCase[]> {
  const { title, pathOf, bare } = reading;
  const rounds = { warmUp: WARM_UP, measured: size.rounds, limitMs: sizes.limitMs, restMs: REST_MS };
  const kind = 'timed';
  const cases: TimedCase[] = [];
  for (const name of size.cut ? ([OURS, WHOLE] as const) : ([OURS] as const)) {
    const samples = await interleave(serversOf(readers, name, pathOf), rounds);
    cases.push({ kind, title: name === OURS ? title : `${title}, whole text answered`, samples, yardsticks: [PEER] });
  }
  const samples = await interleave(partsOf(readers, pathOf, bare), {
    ...rounds,
    measured: Math.min(size.rounds, MOST_PARTS),
  });
  const remark = describeWrite(bare.template);
  return [...cases, { kind, title: `${title}: what a call is made of`, remark, samples, yardsticks: [BARE, DISK] }];
}

async function readUnseen(workshop: Workshop, readers: Readers, size: Size): Promise<readonly TimedCase[]> {
  const { files } = workshop;
  const paths = new Map<string, readonly string[]>();
  for (const [n, name] of [OURS, WHOLE, LIBRARY, PEER].entries()) {
    if (name === WHOLE && !size.cut) continue;
    paths.set(name, await makeFiles(`${files}/${size.mark}-${n}`, `${size.mark}-of-${n}`, size.rounds + WARM_UP, size));
  }
  const [probe = ''] = await makeFiles(`${files}/${size.mark}-probe`, `${size.mark}-probe`, 1, size);
  settleDisk();
  const template = await captureWrite(readers.xtdb, () => readers.ours.call('read', { path: probe }));
  return readInTurns(workshop, readers, size, {
    title: `read ${size.name}, an unseen file each time`,
    pathOf: (name, round) => (paths.get(name) ?? paths.get(PEER))?.[round] ?? '',
    bare: { template, marks: [`${size.mark}-probe`, 'bench-ours'], salt: 'u' },
  });
}

async function readSeen(workshop: Workshop, readers: Readers, size: Size): Promise<readonly TimedCase[]> {
  const [path = ''] = await makeFiles(`${workshop.files}/${size.mark}-seen`, `${size.mark}-seen`, 1, size);
  settleDisk();
  await readers.ours.call('read', { path });
  const template = await captureWrite(readers.xtdb, () => readers.ours.call('read', { path }));
  return readInTurns(workshop, readers, size, {
    title: `read ${size.name}, the same file again and again`,
    pathOf: () => path,
    bare: { template, marks: ['bench-ours'], salt: `s${size.mark.slice(0, 1)}` },
  });
}

/**
 * Reads unseen files of 1 KB without pauses. Measures the time until the last answer, and until the
 * node has indexed the last call.
 */
async function readBackToBack({ files, sizes }: Workshop, { ours, xtdb }: Readers): Promise<CountedCase> {
  const count = sizes.reads.small;
  const paths = await makeFiles(`${files}/straight`, 'straight', count, { bytes: 1_000, lineLength: 80 });
  settleDisk();
  const began = performance.now();
  let call: string | undefined;
  for (const path of paths) ({ call } = await readOurs(ours, path));
  const answered = (performance.now() - began) / count;
  await untilStored(xtdb, call);
  const indexed = (performance.now() - began) / count;
  return {
    kind: 'counted',
    title: `read of ${count} unseen files of 1 KB, one straight after the other`,
    rows: [
      { name: 'a call, until the last answer', value: answered, unit: 'ms' },
      { name: 'a call, until the node has indexed the last', value: indexed, unit: 'ms' },
    ],
  };
}

/** Describes the documents of a transaction in words. */
export function describeWrite({ puts, bytes }: WrittenTransaction): string {
  const kinds = new Map<string, number>();
  for (const { doc } of puts) kinds.set(String(doc.type), (kinds.get(String(doc.type)) ?? 0) + 1);
  const list = [...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ');
  return `One call of palimpsest writes ${list}: ${bytes.toLocaleString('en')} bytes on the way to the node.`;
}

/**
 * Measures `read` of three sizes, unseen and seen, against the public server, and the parts of a
 * call.
 */
export async function measureReading(workshop: Workshop, readers: Readers): Promise<CaseResult> {
  const [first = ''] = await makeFiles(`${workshop.files}/first`, 'first', 1, { bytes: 1_000, lineLength: 80 });
  // The first call of a session opens its turn and writes more than later calls.
  await Promise.all([readOurs(readers.ours, first), readOurs(readers.whole, first), readHere(readers.library, first)]);
  const cases: TimedCase[] = [];
  const goals: Goal[] = [];
  for (const size of sizesOf(workshop)) {
    workshop.tell(`read ${size.name}`);
    const all = [...(await readUnseen(workshop, readers, size)), ...(await readSeen(workshop, readers, size))];
    cases.push(...all);
    for (const { title, samples, yardsticks } of all) {
      if (!yardsticks.includes(PEER)) continue;
      const measured = medianOf(samples, samples[0]?.name ?? OURS) / medianOf(samples, PEER);
      goals.push({ what: `${title}: times server-filesystem`, measured, bar: size.goal, unit: '×' });
    }
  }
  const straight = await readBackToBack(workshop, readers);
  const rows = [
    { name: OURS, pid: readers.ours.pid },
    { name: WHOLE, pid: readers.whole.pid },
    { name: PEER, pid: readers.peer.pid },
  ].map(({ name, pid }) => ({ name, value: residentMiB(pid) ?? Number.NaN, unit: 'MiB' }));
  return {
    cases: [...cases, straight, { kind: 'counted', title: 'Resident memory of the servers after these reads', rows }],
    goals,
  };
}
