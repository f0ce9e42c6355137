import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseReplayConfig } from '../../src/lab/replay/replay-config.js';
import { openReplayDatabase } from '../../src/lab/replay/replay-database.js';
import { replayFile } from '../../src/lab/report/replay-file.js';
import { peakBytes } from '../machine.js';
import { median } from '../quantile.js';
import { makeRecording } from '../recordings.js';
import type { CaseResult } from '../results.js';
import { projectFolder, type Workshop } from '../workshop.js';
import { freshCopy, LogClient, writtenAfter } from '../written-documents.js';

const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest');

/**
 * Compares replays with bare submissions of the same transactions. Both alternate, and each writes
 * documents that the database does not have.
 */
async function measureSpeed(workshop: Workshop): Promise<CaseResult> {
  const { calls, rounds } = workshop.sizes.replay;
  const made = await makeRecording(join(workshop.files, 'speed.jsonl'), { calls }, 20, 4_000);
  const database = await openReplayDatabase(undefined, { cacheDir, onProgress: workshop.tell });
  const xtdb = new LogClient(database.address);
  const replayed: number[] = [];
  const bare: number[] = [];
  let transactions = 0;
  let contexts = 0;
  try {
    for (let round = 0; round <= rounds; round++) {
      const mark = await xtdb.latestSubmittedTx();
      const begun = performance.now();
      const report = await replayFile(made.path, database, {
        config: parseReplayConfig({ tokens: false }, 'bench'),
        variant: `round ${round}`,
      });
      const took = performance.now() - begun;
      const written = await writtenAfter(xtdb, mark);
      const marks = report.sessions.map(({ session }) => session);
      const copies = written.map((transaction) => freshCopy(transaction, marks, `bare${round}`));
      const start = performance.now();
      for (const ops of copies) if (ops.length > 0) await xtdb.execute(ops);
      const submitted = performance.now() - start;
      workshop.tell(
        `replay: ${made.calls} calls in ${Math.round(took)} ms, ` +
          `${written.length} transactions bare in ${Math.round(submitted)} ms`,
      );
      // The first round is a warm-up.
      if (round === 0) continue;
      replayed.push((made.calls * 1_000) / took);
      bare.push((made.calls * 1_000) / submitted);
      transactions = written.length;
      contexts = report.contexts.count;
    }
  } finally {
    await xtdb.close();
    await database.close();
  }
  const share = median(replayed.map((rate, i) => rate / (bare[i] ?? Number.NaN)));
  return {
    cases: [
      {
        kind: 'counted',
        title: `A replay of ${made.calls} calls beside the bare submission of its documents`,
        remark:
          'One process and one in-memory node, in turn. Bare: the same transactions, one after another, each ' +
          'awaited, without reading a recording, deciding or assembling. The replay ends with its digest and its ' +
          'report. Tokens are not counted.',
        rows: [
          { name: 'replayed', value: median(replayed), unit: 'calls/s' },
          { name: 'submitted bare', value: median(bare), unit: 'calls/s' },
          { name: 'transactions', value: transactions, unit: '' },
          { name: 'contexts assembled', value: contexts, unit: '' },
        ],
      },
    ],
    goals: [
      {
        what: 'rate of a replay against bare submission, at least',
        measured: 1 / share,
        bar: 1 / 0.7,
        unit: '× the time',
      },
    ],
  };
}

const LOOK_EVERY_MS = 100;

/** Returns by how many kB the peak memory rises per step after the warm-up. */
function risePerStep(seen: readonly { readonly steps: number; readonly peak: number }[]): number {
  const last = seen.at(-1);
  const first = seen.find(({ steps }) => steps >= (last?.steps ?? 0) / 3);
  if (first === undefined || last === undefined || first === last) return Number.NaN;
  return (last.peak - first.peak) / 1_000 / (last.steps - first.steps);
}

/**
 * Measures the memory of the command while it replays a large recording. The node is another
 * process.
 */
async function measurePeak(workshop: Workshop): Promise<CaseResult> {
  const { bytes } = workshop.sizes.replay;
  const made = await makeRecording(join(workshop.files, 'large.jsonl'), { calls: 0, bytes }, 40, 12_000);
  const config = join(workshop.files, 'replay.json');
  await writeFile(config, '{"tokens":false}');
  workshop.tell(`replaying ${Math.round(made.bytes / 1e6)} MB, ${made.calls} calls`);
  const begun = performance.now();
  const child = spawn(
    process.execPath,
    [join(projectFolder, 'dist', 'cli.js'), 'replay', made.path, '--config', config, '--out', workshop.files, '--json'],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let peak = 0;
  const seen: { readonly steps: number; readonly peak: number }[] = [];
  child.stderr.setEncoding('utf8').on('data', (lines: string) => {
    process.stderr.write(lines);
    const steps = /, (\d+) steps/.exec(lines)?.[1];
    if (steps !== undefined) seen.push({ steps: Number(steps), peak });
  });
  const look = setInterval(async () => {
    peak = Math.max(peak, await peakBytes(child.pid ?? 0));
  }, LOOK_EVERY_MS);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  }).finally(() => clearInterval(look));
  if (code !== 0) throw new Error(`the replay of the large recording ended with code ${code}`);
  const mebibytes = peak / 1_048_576;
  return {
    cases: [
      {
        kind: 'counted',
        title: `A recording of ${Math.round(made.bytes / 1e6)} MB`,
        remark: `${made.calls} calls over 40 files of 12 kB; the process of \`palimpsest replay\`, without the node.`,
        rows: [
          { name: 'peak resident memory', value: mebibytes, unit: 'MiB' },
          { name: 'rise of the peak from a third of the steps to the last', value: risePerStep(seen), unit: 'kB/step' },
          { name: 'time', value: (performance.now() - begun) / 1_000, unit: 's' },
        ],
      },
    ],
    goals: [{ what: 'peak memory of the replay of a 100 MB recording', measured: mebibytes, bar: 200, unit: 'MiB' }],
  };
}

/** Measures the cost of replays. */
export async function measureReplaying(workshop: Workshop): Promise<CaseResult> {
  const [speed, peak] = [await measureSpeed(workshop), await measurePeak(workshop)];
  return { cases: [...speed.cases, ...peak.cases], goals: [...speed.goals, ...peak.goals] };
}
