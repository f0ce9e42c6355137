import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import pLimit from 'p-limit';
import writeFileAtomic from 'write-file-atomic';
import { defined } from '../../values/defined.js';
import { errorOf } from '../../values/thrown.js';
import { openRecording } from '../recordings/open-recording.js';
import type { ReplayConfig } from '../replay/replay-config.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { recordingHash } from '../replay/replay-identity.js';
import { replayFile } from './replay-file.js';
import type { ReplayReport } from './replay-report.js';
import { reportMarkdown } from './report-markdown.js';

/** One recording to be replayed in one way. */
export interface ReplayJob {
  readonly path: string;
  /** How progress names it; the name of the file where absent. */
  readonly name?: string;
  readonly config: ReplayConfig;
  readonly variant?: string;
  readonly into?: string;
}

/** The result of a job: its report, or the error that prevented one. */
export type ReplayOutcome =
  | { readonly job: ReplayJob; readonly report: ReplayReport; readonly ms: number }
  | { readonly job: ReplayJob; readonly error: Error; readonly ms: number };

/** How several replays run side by side. */
export interface ReplayManyOptions {
  readonly database: ReplayDatabase;
  readonly jobs: number;
  /** One line about how far a replay is. */
  readonly onProgress?: (line: string) => void;
  /** Called with each outcome as soon as it is there. */
  readonly onOutcome?: (outcome: ReplayOutcome) => Promise<void> | void;
  readonly signal?: AbortSignal;
}

const REPORT_EVERY_MS = 2_000;

async function replayOne(
  job: ReplayJob,
  sha256: string | undefined,
  { database, onProgress, signal }: ReplayManyOptions,
): Promise<ReplayOutcome> {
  const started = Date.now();
  let reported = started;
  const { name = basename(job.path) } = job;
  try {
    const report = await replayFile(job.path, database, {
      config: job.config,
      ...defined({ sha256, variant: job.variant, into: job.into, signal, onNotice: onProgress }),
      onProgress: ({ steps, contexts, bytes, total }) => {
        if (Date.now() - reported < REPORT_EVERY_MS) return;
        reported = Date.now();
        onProgress?.(`${name}: ${Math.floor((100 * bytes) / Math.max(1, total))} % read, ${steps} steps, ${contexts} contexts`);
      },
    });
    return { job, report, ms: Date.now() - started };
  } catch (error) {
    signal?.throwIfAborted();
    return { job, error: errorOf(error), ms: Date.now() - started };
  }
}

/** The hash of a job's recording; undefined where it cannot be read, which the replay then reports. */
async function hashOf({ path }: ReplayJob, signal: AbortSignal | undefined): Promise<string | undefined> {
  try {
    return await recordingHash(await openRecording(path), signal);
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}

/** The outcome of a job, or of the same bytes under another name. */
function under(job: ReplayJob, outcome: ReplayOutcome): ReplayOutcome {
  if ('error' in outcome) return { ...outcome, job };
  const { report, ms } = outcome;
  return { job, ms, report: { ...report, recording: { ...report.recording, name: basename(job.path) } } };
}

/**
 * Replays several recordings side by side into one database, each into sessions of its own, so that the order in which they run makes no difference. Files of
 * the same bytes would be one session: they are replayed once, and all get the report. A replay that fails does not stop the others. Returns the outcomes in
 * the order of the jobs.
 * @throws the reason of an aborted `signal`
 */
async function replayMany(jobs: readonly ReplayJob[], options: ReplayManyOptions): Promise<readonly ReplayOutcome[]> {
  const limit = pLimit(Math.max(1, options.jobs));
  const begun = new Map<string, Promise<ReplayOutcome>>();
  return Promise.all(
    jobs.map((job) =>
      limit(async () => {
        options.signal?.throwIfAborted();
        const sha256 = jobs.length === 1 ? undefined : await hashOf(job, options.signal);
        const key = [sha256 ?? job.path, job.variant ?? '', job.into ?? ''].join('\n');
        const replay = begun.get(key) ?? replayOne(job, sha256, options);
        begun.set(key, replay);
        const outcome = under(job, await replay);
        await options.onOutcome?.(outcome);
        return outcome;
      }),
    ),
  );
}

/** Writes a report as JSON and Markdown, readable by its user alone, into a folder, named after the recording and the first digits of its hash. Returns the path without its extension. */
export async function writeReports(folder: string, report: ReplayReport): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const variant = report.variant === '' ? '' : `-${report.variant.replaceAll(/[^A-Za-z0-9_=.-]+/g, '_')}`;
  const stem = join(folder, `${report.recording.name.replace(/\.[a-z]+$/, '')}-${report.recording.sha256.slice(0, 8)}${variant}`);
  await writeFileAtomic(`${stem}.json`, `${JSON.stringify(report, undefined, 1)}\n`, { mode: 0o600 });
  await writeFileAtomic(`${stem}.md`, reportMarkdown(report), { mode: 0o600 });
  return stem;
}

/**
 * How many bytes of recordings are replayed into one in-memory database. What is written stays in its heap: 100 MB of recordings of real agents filled a heap of
 * 1 GB, and a node that is short of heap spends its time on collecting it.
 */
const BATCH_BYTES = 40_000_000;

/** How replays are spread over databases. */
export interface BatchOptions extends Omit<ReplayManyOptions, 'database'> {
  /** Opens the database for a batch, which is closed after the batch. */
  readonly open: () => Promise<ReplayDatabase>;
  readonly batchBytes?: number;
}

/** Splits jobs into batches of neighbours, each as large as one database should hold, with one job at least. */
async function batchesOf(jobs: readonly ReplayJob[], most: number): Promise<readonly (readonly ReplayJob[])[]> {
  const batches: ReplayJob[][] = [];
  let filled = 0;
  for (const job of jobs) {
    // A recording that cannot be opened is reported when it is replayed.
    const { size } = await openRecording(job.path).catch(() => ({ size: 0 }));
    if (batches.length === 0 || filled + size > most) {
      batches.push([]);
      filled = 0;
    }
    batches.at(-1)?.push(job);
    filled += size;
  }
  return batches;
}

/**
 * Replays several recordings as `replayMany` does, batch by batch, each into a database of its own.
 * @throws the error of `open`, and the reason of an aborted `signal`
 */
export async function replayInBatches(jobs: readonly ReplayJob[], options: BatchOptions): Promise<readonly ReplayOutcome[]> {
  const { open, batchBytes = BATCH_BYTES, ...rest } = options;
  const outcomes: ReplayOutcome[] = [];
  for (const batch of await batchesOf(jobs, batchBytes)) {
    rest.signal?.throwIfAborted();
    const database = await open();
    try {
      outcomes.push(...(await replayMany(batch, { ...rest, database })));
    } finally {
      await database.close();
    }
  }
  return outcomes;
}
