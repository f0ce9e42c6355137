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

/** A recording with the settings of its replay. */
export interface ReplayJob {
  readonly path: string;
  /** The recording's name in progress lines; the file name if omitted. */
  readonly name?: string;
  readonly config: ReplayConfig;
  readonly variant?: string;
  readonly into?: string;
}

/** The outcome of a job: its report, or the error that prevented a report. */
export type ReplayOutcome =
  | { readonly job: ReplayJob; readonly report: ReplayReport; readonly ms: number }
  | { readonly job: ReplayJob; readonly error: Error; readonly ms: number };

/** Settings of several replays that run in parallel. */
export interface ReplayManyOptions {
  readonly database: ReplayDatabase;
  readonly jobs: number;
  /** Receives the progress lines of each replay. */
  readonly onProgress?: (line: string) => void;
  /** Receives each outcome as soon as it is known. */
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
        onProgress?.(
          `${name}: ${Math.floor((100 * bytes) / Math.max(1, total))} % read, ${steps} steps, ${contexts} contexts`,
        );
      },
    });
    return { job, report, ms: Date.now() - started };
  } catch (error) {
    signal?.throwIfAborted();
    return { job, error: errorOf(error), ms: Date.now() - started };
  }
}

/**
 * Returns the hash of a job's recording. Undefined if it is unreadable; the replay then reports the
 * error.
 */
async function hashOf({ path }: ReplayJob, signal: AbortSignal | undefined): Promise<string | undefined> {
  try {
    return await recordingHash(await openRecording(path), signal);
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}

/** Returns the outcome for another job whose recording has the same bytes. */
function under(job: ReplayJob, outcome: ReplayOutcome): ReplayOutcome {
  if ('error' in outcome) return { ...outcome, job };
  const { report, ms } = outcome;
  return { job, ms, report: { ...report, recording: { ...report.recording, name: basename(job.path) } } };
}

/**
 * Replays recordings in parallel into one database. Each replay has its own sessions, so the order
 * of the replays has no effect. Files with equal bytes are replayed once, and share the report. A
 * failed replay does not stop the others. Returns the outcomes in the order of the jobs.
 *
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

/**
 * Writes a report as JSON and Markdown into a folder, with access for the user only. The names of
 * the two files consist of the recording's name and the first digits of its hash. Returns their
 * common path without extension.
 */
export async function writeReports(folder: string, report: ReplayReport): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const variant = report.variant === '' ? '' : `-${report.variant.replaceAll(/[^A-Za-z0-9_=.-]+/g, '_')}`;
  const stem = join(
    folder,
    `${report.recording.name.replace(/\.[a-z]+$/, '')}-${report.recording.sha256.slice(0, 8)}${variant}`,
  );
  await writeFileAtomic(`${stem}.json`, `${JSON.stringify(report, undefined, 1)}\n`, { mode: 0o600 });
  await writeFileAtomic(`${stem}.md`, reportMarkdown(report), { mode: 0o600 });
  return stem;
}

/**
 * Maximum bytes of recordings that are replayed into one in-memory database. Such a database keeps
 * all writes in the heap. In a heap of 1 GB, recordings of 100 MB spent most of the time on garbage
 * collection.
 */
const BATCH_BYTES = 40_000_000;

/** Settings of replays that are distributed over several databases. */
export interface BatchOptions extends Omit<ReplayManyOptions, 'database'> {
  /** Opens a database for one batch. It is closed after the batch. */
  readonly open: () => Promise<ReplayDatabase>;
  readonly batchBytes?: number;
}

/**
 * Splits jobs, in order, into batches that each fit into one database. A batch has at least one
 * job.
 */
async function batchesOf(jobs: readonly ReplayJob[], most: number): Promise<readonly (readonly ReplayJob[])[]> {
  const batches: ReplayJob[][] = [];
  let filled = 0;
  for (const job of jobs) {
    // If the recording cannot be opened, its replay reports the error.
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
 * Replays recordings like `replayMany`, in batches that each have their own database.
 * @throws the error of `open`, and the reason of an aborted `signal`
 */
export async function replayInBatches(
  jobs: readonly ReplayJob[],
  options: BatchOptions,
): Promise<readonly ReplayOutcome[]> {
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
