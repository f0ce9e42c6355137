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
  /** Whether the default answer holds less than the file. */
  readonly cut: boolean;
}

/** Everything that reads, set up once for all sizes. */
export interface Readers {
  readonly ours: StdioServer;
  /** Ours with the longest answers that it allows. */
  readonly whole: StdioServer;
  readonly peer: StdioServer;
  readonly library: ToolContext;
  /** A connection to the node beside all of them. */
  readonly xtdb: LogClient;
}

const WARM_UP = 3;
/**
 * Before each call: an agent's call comes when its model has spoken, and what a server still has to do for the call before is done by then. Calls one straight after the other are measured
 * apart, below and as `calls`.
 */
const REST_MS = 40;

function sizesOf({ sizes: { reads } }: Workshop): readonly Size[] {
  return [
    { name: '1 KB', mark: 'small', bytes: 1_000, lineLength: 80, rounds: reads.small, goal: 1.5, cut: false },
    { name: '100 KB', mark: 'middle', bytes: 100_000, lineLength: 120, rounds: reads.middle, goal: 1, cut: true },
    // The longest answer allowed holds a million characters and 2,000 lines, its header included.
    { name: '1 MB', mark: 'large', bytes: 998_000, lineLength: 520, rounds: reads.large, goal: 0.5, cut: true },
  ];
}

async function readOurs(server: StdioServer, path: string, mustBeWhole = false): Promise<Outcome> {
  const answer = await server.call('read', { path });
  const { palimpsest } = answer.result._meta as { readonly palimpsest: { readonly whole: boolean; readonly call: string } };
  if (mustBeWhole && !palimpsest.whole) throw new Error(`the answer for ${path} does not hold the whole text`);
  return { bytes: answer.bytes, call: palimpsest.call };
}

async function readHere(context: ToolContext, path: string): Promise<Outcome> {
  const { meta } = await runTool('read', { path }, context);
  return { call: String(meta.call) };
}

/** The contenders of a size; `pathOf` says which file a contender reads in a round. */
function contendersFor(
  size: Size,
  { ours, whole, peer, library, xtdb }: Readers,
  pathOf: (contender: string, round: number) => string,
  bare: { readonly template: WrittenTransaction; readonly marks: readonly string[]; readonly salt: string },
): readonly Contender[] {
  const over = (name: string, read: (path: string) => Promise<Outcome>): Contender => ({
    name,
    prepare: async (round) => {
      const path = pathOf(name, round);
      return () => read(path);
    },
    settle: ({ call }) => untilStored(xtdb, call),
  });
  return [
    over(OURS, (path) => readOurs(ours, path)),
    ...(size.cut ? [over(WHOLE, (path) => readOurs(whole, path, true))] : []),
    over(LIBRARY, (path) => readHere(library, path)),
    over(PEER, async (path) => ({ bytes: (await peer.call('read_text_file', { path })).bytes })),
    over(DISK, async (path) => {
      await readFile(path, 'utf8');
      return {};
    }),
    {
      name: BARE,
      prepare: async (round) => {
        const ops = freshCopy(bare.template, bare.marks, `${bare.salt}${round}`);
        return async () => {
          const { outcome } = await xtdb.execute(ops);
          if (outcome !== 'committed') throw new Error('the bare transaction was not committed');
          return {};
        };
      },
    },
  ];
}

const YARDSTICKS = [PEER, BARE, DISK];

async function readUnseen(workshop: Workshop, readers: Readers, size: Size): Promise<TimedCase> {
  const { files, sizes } = workshop;
  const count = size.rounds + WARM_UP;
  const paths = new Map<string, readonly string[]>();
  for (const [n, name] of [OURS, WHOLE, LIBRARY, PEER].entries()) {
    if (name === WHOLE && !size.cut) continue;
    paths.set(name, await makeFiles(`${files}/${size.mark}-${n}`, `${size.mark}-of-${n}`, count, size));
  }
  const [probe = ''] = await makeFiles(`${files}/${size.mark}-probe`, `${size.mark}-probe`, 1, size);
  settleDisk();
  const template = await captureWrite(readers.xtdb, () => readers.ours.call('read', { path: probe }));
  const pathOf = (name: string, round: number): string => (paths.get(name) ?? paths.get(PEER))?.[round] ?? '';
  const bare = { template, marks: [`${size.mark}-probe`, 'bench-ours'], salt: 'u' };
  const rounds = { warmUp: WARM_UP, measured: size.rounds, limitMs: sizes.limitMs, restMs: REST_MS };
  return {
    kind: 'timed',
    title: `read ${size.name}, an unseen file each time`,
    remark: describeWrite(template),
    samples: await interleave(contendersFor(size, readers, pathOf, bare), rounds),
    yardsticks: YARDSTICKS,
  };
}

async function readSeen(workshop: Workshop, readers: Readers, size: Size): Promise<TimedCase> {
  const [path = ''] = await makeFiles(`${workshop.files}/${size.mark}-seen`, `${size.mark}-seen`, 1, size);
  settleDisk();
  await readers.ours.call('read', { path });
  const template = await captureWrite(readers.xtdb, () => readers.ours.call('read', { path }));
  const bare = { template, marks: ['bench-ours'], salt: `s${size.mark.slice(0, 1)}` };
  const rounds = { warmUp: WARM_UP, measured: size.rounds, limitMs: workshop.sizes.limitMs, restMs: REST_MS };
  return {
    kind: 'timed',
    title: `read ${size.name}, the same file again and again`,
    remark: describeWrite(template),
    samples: await interleave(
      contendersFor(size, readers, () => path, bare),
      rounds,
    ),
    yardsticks: YARDSTICKS,
  };
}

/** Unseen files of 1 KB one straight after the other: until the last answer, and until the node has indexed the last. */
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

/** What a transaction put, in words. */
export function describeWrite({ puts, bytes }: WrittenTransaction): string {
  const kinds = new Map<string, number>();
  for (const { doc } of puts) kinds.set(String(doc.type), (kinds.get(String(doc.type)) ?? 0) + 1);
  const list = [...kinds].map(([kind, count]) => `${count} ${kind}`).join(', ');
  return `One call of palimpsest writes ${list}: ${bytes.toLocaleString('en')} bytes on the way to the node.`;
}

/** `read` of three sizes, unseen and seen, beside the public server, a bare transaction of what it writes, and the bare file. */
export async function measureReading(workshop: Workshop, readers: Readers): Promise<CaseResult> {
  const [first = ''] = await makeFiles(`${workshop.files}/first`, 'first', 1, { bytes: 1_000, lineLength: 80 });
  // The first call of a session opens its turn, which writes more than a call otherwise does.
  await Promise.all([readOurs(readers.ours, first), readOurs(readers.whole, first), readHere(readers.library, first)]);
  const cases: TimedCase[] = [];
  const goals: Goal[] = [];
  for (const size of sizesOf(workshop)) {
    workshop.tell(`read ${size.name}`);
    const unseen = await readUnseen(workshop, readers, size);
    const seen = await readSeen(workshop, readers, size);
    cases.push(unseen, seen);
    for (const { title, samples } of [unseen, seen]) {
      for (const name of size.cut ? [OURS, WHOLE] : [OURS]) {
        const measured = medianOf(samples, name) / medianOf(samples, PEER);
        goals.push({
          what: `${title}${name === WHOLE ? ', whole text answered' : ''}: times server-filesystem`,
          measured,
          bar: size.goal,
          unit: '×',
        });
      }
    }
  }
  const straight = await readBackToBack(workshop, readers);
  const rows = [
    { name: OURS, pid: readers.ours.pid },
    { name: WHOLE, pid: readers.whole.pid },
    { name: PEER, pid: readers.peer.pid },
  ].map(({ name, pid }) => ({ name, value: residentMiB(pid) ?? Number.NaN, unit: 'MiB' }));
  return { cases: [...cases, straight, { kind: 'counted', title: 'Resident memory of the servers after these reads', rows }], goals };
}
