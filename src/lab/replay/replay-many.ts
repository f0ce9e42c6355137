import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import pLimit from 'p-limit';
import writeFileAtomic from 'write-file-atomic';
import { defined } from '../../values/defined.js';
import { openRecording } from '../recordings/open-recording.js';
import type { ReplayConfig } from './replay-config.js';
import type { ReplayDatabase } from './replay-database.js';
import { replayFile } from './replay-file.js';
import { recordingHash } from './replay-identity.js';
import type { ReplayReport } from './report/replay-report.js';
import { reportMarkdown } from './report/report-markdown.js';

/** One recording to be replayed in one way. */
export interface ReplayJob {
  readonly path: string;
  readonly config: ReplayConfig;
  readonly variant?: string;
  readonly into?: string;
}

/** What became of a job: its report, or why there is none. */
export type ReplayOutcome =
  | { readonly job: ReplayJob; readonly report: ReplayReport; readonly ms: number }
  | { readonly job: ReplayJob; readonly error: Error; readonly ms: number };

/** How several replays run side by side. */
export interface ReplayManyOptions {
  readonly database: ReplayDatabase;
  readonly jobs: number;
  /** One line about how far a replay is. */
  readonly onProgress?: (line: string) => void;
  /** Told each outcome as it comes. */
  readonly onOutcome?: (outcome: ReplayOutcome) => Promise<void> | void;
  readonly signal?: AbortSignal;
}

const TELL_EVERY_MS = 2_000;

async function replayOne(
  job: ReplayJob,
  sha256: string | undefined,
  { database, onProgress, signal }: ReplayManyOptions,
): Promise<ReplayOutcome> {
  const started = Date.now();
  let told = started;
  const name = basename(job.path);
  try {
    const report = await replayFile(job.path, database, {
      config: job.config,
      ...defined({ sha256, variant: job.variant, into: job.into, signal, onNotice: onProgress }),
      onProgress: ({ steps, contexts, bytes, total }) => {
        if (Date.now() - told < TELL_EVERY_MS) return;
        told = Date.now();
        onProgress?.(`${name}: ${Math.floor((100 * bytes) / Math.max(1, total))} % read, ${steps} steps, ${contexts} contexts`);
      },
    });
    return { job, report, ms: Date.now() - started };
  } catch (error) {
    signal?.throwIfAborted();
    return { job, error: error instanceof Error ? error : new Error(String(error)), ms: Date.now() - started };
  }
}

/** The hash of a job's recording; undefined where it cannot be read, which the replay tells. */
async function hashOf({ path }: ReplayJob, signal: AbortSignal | undefined): Promise<string | undefined> {
  try {
    return await recordingHash(await openRecording(path), signal);
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}

/** The outcome of the same bytes under another name. */
function under(job: ReplayJob, outcome: ReplayOutcome): ReplayOutcome {
  if ('error' in outcome) return { ...outcome, job };
  const { report, ms } = outcome;
  return { job, ms, report: { ...report, recording: { ...report.recording, name: basename(job.path) } } };
}

/**
 * Replays several recordings side by side into one database, each into a session of its own; they share nothing there, so the order in which they run shows
 * nowhere. Files of the same bytes would be one session: they are replayed once, and each has the report. One that fails does not keep the others from
 * running. Outcomes come back in the order of the jobs.
 */
export async function replayMany(jobs: readonly ReplayJob[], options: ReplayManyOptions): Promise<readonly ReplayOutcome[]> {
  const limit = pLimit(Math.max(1, options.jobs));
  const begun = new Map<string, Promise<ReplayOutcome>>();
  return Promise.all(
    jobs.map((job) =>
      limit(async () => {
        options.signal?.throwIfAborted();
        const sha256 = jobs.length === 1 ? undefined : await hashOf(job, options.signal);
        const key = sha256 === undefined ? undefined : [sha256, job.variant ?? '', job.into ?? ''].join('\n');
        const running = key === undefined ? undefined : begun.get(key);
        const own = running ?? replayOne(job, sha256, options);
        if (key !== undefined && running === undefined) begun.set(key, own);
        const outcome = running === undefined ? await own : under(job, await own);
        await options.onOutcome?.(outcome);
        return outcome;
      }),
    ),
  );
}

/** Writes the two reports of a replay into a folder, named after the recording and the first digits of its hash; answers the path without its extension. */
export async function writeReports(folder: string, report: ReplayReport): Promise<string> {
  await mkdir(folder, { recursive: true });
  const variant = report.variant === '' ? '' : `-${report.variant.replaceAll(/[^A-Za-z0-9_=.-]+/g, '_')}`;
  const stem = join(folder, `${report.recording.name.replace(/\.[a-z]+$/, '')}-${report.recording.sha256.slice(0, 8)}${variant}`);
  await writeFileAtomic(`${stem}.json`, `${JSON.stringify(report, undefined, 1)}\n`);
  await writeFileAtomic(`${stem}.md`, reportMarkdown(report));
  return stem;
}
