import { makeFiles, settleDisk } from '../fixtures.js';
import { type Contender, interleave } from '../interleave.js';
import { median } from '../quantile.js';
import { type CaseResult, medianOf } from '../results.js';
import { callOf, residentMiB, type StdioServer } from '../stdio-server.js';
import type { Workshop } from '../workshop.js';
import { untilStored } from '../written-documents.js';
import type { Readers } from './reading.js';

const FILES = 50;
const CALLS_OF_A_TURN = 100;
const ONE_TURN = 'palimpsest, all calls in one turn';
const MANY_TURNS = `palimpsest, ${CALLS_OF_A_TURN} calls in each turn`;
const PEER = 'server-filesystem';

/** One of the compared servers. */
interface Caller {
  readonly name: string;
  /** Makes a call and returns the id of its object. */
  call(n: number): Promise<string | undefined>;
}

function ours(
  server: StdioServer,
  session: string,
  { paths, turnOf }: { readonly paths: readonly string[]; readonly turnOf: (n: number) => string },
) {
  return async (n: number): Promise<string | undefined> =>
    callOf(await server.call('read', { path: paths[n % paths.length] ?? '', session }, turnOf(n)));
}

/**
 * Makes a series of calls without pauses. Returns the milliseconds until the last answer, and until
 * the node has stored all calls.
 */
async function stretch(
  { call }: Caller,
  { from, count }: { readonly from: number; readonly count: number },
  { xtdb }: Readers,
) {
  const began = performance.now();
  let last: string | undefined;
  for (let n = from; n < from + count; n++) last = await call(n);
  const answered = performance.now() - began;
  await untilStored(xtdb, last);
  return { answered, stored: performance.now() - began };
}

/**
 * Compares thousands of calls in one turn with the same calls in many turns and on the public
 * server. Series of the three alternate. Then compares a late call of a turn with an early one, in
 * the same process.
 */
export async function measureCalls(workshop: Workshop, readers: Readers, dataDir: string): Promise<CaseResult> {
  const { calls: count, callStretch, limitMs } = workshop.sizes;
  const paths = await makeFiles(`${workshop.files}/calls`, 'calls', FILES, { bytes: 740, lineLength: 80 });
  settleDisk();
  const server = workshop.ours(dataDir, undefined);
  await server.initialize();
  const inOneTurn = ours(server, 'bench-calls-one', { paths, turnOf: () => 'one' });
  const callers: readonly Caller[] = [
    { name: ONE_TURN, call: inOneTurn },
    {
      name: MANY_TURNS,
      call: ours(server, 'bench-calls-many', { paths, turnOf: (n) => `turn-${Math.floor(n / CALLS_OF_A_TURN)}` }),
    },
    {
      name: PEER,
      call: async (n) => {
        await readers.peer.call('read_text_file', { path: paths[n % FILES] ?? '' });
        return undefined;
      },
    },
  ];
  const taken = callers.map(() => [] as { readonly answered: number; readonly stored: number }[]);
  for (let from = 0; from < count; from += callStretch) {
    workshop.tell(`calls ${from + 1} to ${from + callStretch}`);
    for (const [i, caller] of callers.entries())
      taken[i]?.push(await stretch(caller, { from, count: callStretch }, readers));
  }
  const early = ours(server, 'bench-calls-early', { paths, turnOf: () => 'one' });
  for (let n = 0; n < CALLS_OF_A_TURN / 2; n++) await early(n);
  const [LATE, EARLY] = [`a call behind ${count.toLocaleString('en')} of its turn`, 'a call behind 50 of its turn'];
  const contender = (name: string, call: Caller['call']): Contender => ({
    name,
    prepare: async (round) => async () => {
      const made = await call(count + round);
      return made === undefined ? {} : { call: made };
    },
    settle: ({ call: made }) => untilStored(readers.xtdb, made),
  });
  const contenders = [
    contender(LATE, inOneTurn),
    contender(EARLY, early),
    contender(PEER, (callers[2] as Caller).call),
  ];
  const samples = await interleave(contenders, { warmUp: 3, measured: CALLS_OF_A_TURN / 2, limitMs });
  const memory = residentMiB(server.pid);
  await server.close();

  const per1000 = (ms: number): number => (ms / callStretch) * 1_000;
  const [one = []] = taken;
  const rows = callers.flatMap(({ name }, i) => {
    const times = taken[i] ?? [];
    const row = (what: string, value: number | undefined) => ({
      name: `${name}, ${what}`,
      value: per1000(value ?? Number.NaN),
      unit: 'ms',
    });
    const answered = [
      row('first, until the last answer', times[0]?.answered),
      row('last', times.at(-1)?.answered),
      row('median', median(times.map((time) => time.answered))),
    ];
    return name === PEER
      ? answered
      : [...answered, row('median, until the node has them', median(times.map(({ stored }) => stored)))];
  });
  return {
    cases: [
      {
        kind: 'counted',
        title:
          `1,000 of ${count.toLocaleString('en')} calls, \`read\` of ${FILES} files of 740 bytes, ` +
          'one straight after the other',
        remark: `In stretches of ${callStretch.toLocaleString('en')}. After each, the node catches up.`,
        rows: [
          ...rows,
          { name: 'resident memory of palimpsest mcp behind all of them', value: memory ?? Number.NaN, unit: 'MiB' },
        ],
      },
      { kind: 'timed', title: 'A call late and early in a turn', samples, yardsticks: [EARLY, PEER] },
    ],
    goals: [
      {
        what: '1,000 calls in one turn, until the last answer, median',
        measured: per1000(median(one.map(({ answered }) => answered))),
        bar: 2_000,
        unit: 'ms',
      },
      {
        what: '1,000 calls in one turn, until the node has them, median',
        measured: per1000(median(one.map(({ stored }) => stored))),
        bar: 2_000,
        unit: 'ms',
      },
      {
        what: `time of ${LATE} against ${EARLY}`,
        measured: medianOf(samples, LATE) / medianOf(samples, EARLY),
        bar: 1.2,
        unit: '×',
      },
    ],
  };
}
