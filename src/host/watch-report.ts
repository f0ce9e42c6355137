import { join } from 'node:path';
import * as z from 'zod';
import { livingLockOwner, lockFilesAmong, tokenSchema } from '../process/lock.js';
import { namesIn, parseJson, textOf } from '../process/owned-file.js';
import type { ProcessIdentity } from '../process/process-identity.js';

/**
 * The name of the lock in the data folder whose owner is the watcher. Its file is `watch.1.lock`.
 */
export const WATCH_LOCK = 'watch';

/** The file in which `palimpsest watch` states what it follows. */
export const watchReportFile = (dataDir: string): string => join(dataDir, 'watch.json');

const reportSchema = z.object({
  version: z.literal(1),
  /** Transcripts are ignored until they change after this time, in milliseconds since 1970. */
  since: z.number(),
  /** The process that wrote it. */
  pid: z.number(),
  /** The transcripts that are being recorded. */
  followed: z.array(
    z.object({ agent: z.string(), session: z.string(), path: z.string(), folder: z.string().optional() }),
  ),
  /** The transcripts whose last import failed. */
  failed: z.array(z.object({ path: z.string(), reason: z.string() })),
  /** The last other failures. */
  notices: z.array(z.object({ at: z.number(), line: z.string() })),
});

/** The transcripts that `palimpsest watch` follows, and its failures, as it last wrote them. */
export type WatchReport = z.output<typeof reportSchema>;

/** Reads the report of a data folder. Undefined if `palimpsest watch` never ran there. */
export async function readWatchReport(dataDir: string): Promise<WatchReport | undefined> {
  const text = await textOf(watchReportFile(dataDir));
  return text === undefined ? undefined : parseJson(text, reportSchema);
}

/** Returns the process that follows the sessions of a data folder. Undefined if none runs. */
export async function watchOwner(dataDir: string): Promise<ProcessIdentity | undefined> {
  const files = lockFilesAmong(dataDir, await namesIn(dataDir)).filter(({ name }) => name === WATCH_LOCK);
  return livingLockOwner(files, tokenSchema);
}

/** The state of `palimpsest watch` in a data folder. */
export interface WatchStatus extends Pick<WatchReport, 'followed' | 'failed' | 'notices'> {
  /** The running process; undefined if none runs. */
  readonly pid: number | undefined;
  readonly since: number | undefined;
}

/** Returns the state of `palimpsest watch` in a data folder. An ended process follows nothing. */
export async function watchStatus(dataDir: string): Promise<WatchStatus> {
  const [owner, report] = [await watchOwner(dataDir), await readWatchReport(dataDir)];
  const { since, failed = [], notices = [] } = report ?? {};
  const followed = owner !== undefined && report?.pid === owner.pid ? report.followed : [];
  return { pid: owner?.pid, since, followed, failed, notices };
}
