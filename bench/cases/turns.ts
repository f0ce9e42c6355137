import type { ContextSession } from '../../src/index.js';
import type { ToolContext } from '../../src/tools/tool.js';
import { makeFiles, settleDisk } from '../fixtures.js';
import { storeBytes } from '../folder-size.js';
import { type Contender, interleave } from '../interleave.js';
import { median } from '../quantile.js';
import { type CaseResult, medianOf } from '../results.js';
import { runTool } from '../run-tool.js';
import type { Workshop } from '../workshop.js';
import { writtenAfter } from '../written-documents.js';
import type { Readers } from './reading.js';

/** Runs one small turn: a message of the user, a short read of a known file, an answer. */
async function turn(context: LongContext, path: string, n: number): Promise<void> {
  const { session } = context;
  await session.reportMessage({ role: 'user', text: `Question ${n}: what does this line mean?` });
  await runTool('read', { path }, context);
  await session.reportMessage({ role: 'assistant', text: `Answer ${n}: it names a fox and a dog.` });
}

/** The context of the tools, with a whole `ContextSession`. */
type LongContext = ToolContext & { readonly session: ContextSession };

interface LongSession {
  readonly session: ContextSession;
  readonly name: string;
  /** Turns before the timed ones. */
  readonly before: number;
  readonly growth: number;
}

/**
 * Runs turns until only one series is left before the timed turns. Returns the growth of the stores
 * per turn in the last series.
 */
async function advance(
  context: LongContext,
  path: string,
  before: number,
  stretch: number,
  dataDir: string,
): Promise<number> {
  let start = 0;
  for (let n = 1; n <= before; n++) {
    if (n === before - stretch + 1) start = (await storeBytes(dataDir)).total;
    await turn(context, path, n);
  }
  return before < stretch ? Number.NaN : ((await storeBytes(dataDir)).total - start) / stretch;
}

/**
 * Compares late turns with early ones. Sessions of different lengths run at the same time, so that
 * a warming JVM or another program's load does not look like growth.
 */
export async function measureTurns(
  workshop: Workshop,
  { library, xtdb }: Readers,
  dataDir: string,
): Promise<CaseResult> {
  const { turns, stretch, limitMs } = workshop.sizes;
  const [path = ''] = await makeFiles(`${workshop.files}/turns`, 'turns', 1, { bytes: 400, lineLength: 80 });
  settleDisk();
  const sessions: LongSession[] = [];
  for (const last of [...turns].reverse()) {
    workshop.tell(`a session of ${last} turns`);
    const session = await library.client.openSession({ id: `bench-turns-${last}` });
    const before = last - stretch;
    const growth = await advance({ ...library, session }, path, before, stretch, dataDir);
    sessions.push({ session, name: `turns ${before + 1} to ${last}`, before, growth });
  }
  sessions.reverse();
  const mark = await xtdb.latestSubmittedTx();
  const contenders = sessions.map(
    ({ session, name, before }): Contender => ({
      name,
      prepare: async (round) => async () => {
        await turn({ ...library, session }, path, before + round + 1);
        return {};
      },
    }),
  );
  const samples = await interleave(contenders, { warmUp: 0, measured: stretch, limitMs });
  for (const { session } of sessions) await library.client.closeSession(session);

  const written = await writtenAfter(xtdb, mark);
  const bytes = sessions.map(({ session: { id } }) => {
    const perTurn = new Map<number, number>();
    for (const { puts, bytes: sent } of written) {
      const step = puts.find(({ doc }) => doc.type === 'step' && doc.session_ref === `session:${id}`)?.doc.body as
        | { readonly turn: number }
        | undefined;
      if (step !== undefined) perTurn.set(step.turn, (perTurn.get(step.turn) ?? 0) + sent);
    }
    return median([...perTurn.values()]);
  });
  const names = sessions.map(({ name }) => name);
  const [early = '', , late = ''] = names;
  return {
    cases: [
      { kind: 'timed', title: 'A small turn (three steps), early and late in a session', samples, yardsticks: [early] },
      {
        kind: 'counted',
        title: 'Bytes of a small turn',
        remark:
          'Sent: bytes of its transactions on the way to the node, median. Stores: growth of golden and index ' +
          'store in the preceding turns, with write-ahead logs, before compaction.',
        rows: [
          ...names.map((name, i) => ({ name: `sent, ${name}`, value: bytes[i] ?? Number.NaN, unit: 'B' })),
          ...sessions.flatMap(({ name, growth }) =>
            Number.isNaN(growth) ? [] : [{ name: `stores, just before ${name}`, value: growth, unit: 'B' }],
          ),
        ],
      },
    ],
    goals: [
      {
        what: `time of ${late} against ${early}`,
        measured: medianOf(samples, late) / medianOf(samples, early),
        bar: 1.2,
        unit: '×',
      },
      {
        what: `bytes sent of ${late} against ${early}`,
        measured: (bytes[2] ?? Number.NaN) / (bytes[0] ?? Number.NaN),
        bar: 1.2,
        unit: '×',
      },
    ],
  };
}
