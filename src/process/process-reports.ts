import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { livingOwners, readJsonFiles, removeDeadFiles, replaceFile } from './owned-file.js';
import { identifySelf, isAlive, processIdentitySchema } from './process-identity.js';

const stateSchema = z.object({
  /** Sources whose changes are noticed. */
  attached: z.int().nonnegative(),
  /** Sources without a tracker or that cannot be read. */
  orphaned: z.int().nonnegative(),
  /** Sessions whose sources are still being checked. */
  resuming: z.int().nonnegative(),
  /** Folders that are only checked from time to time, because the system has no watch left for them. */
  sweptFolders: z.int().nonnegative(),
  /** Some of the sources that could not be read, each with the reason. */
  unreadable: z.array(z.object({ path: z.string(), reason: z.string() })),
});

const trackerSchema = processIdentitySchema.extend({
  what: z.string(),
  /** When it was written. */
  at: z.iso.datetime(),
  ...stateSchema.shape,
});

/** What a process tracks [§5.9], as other processes may see it. */
export type TrackerState = Readonly<z.infer<typeof stateSchema>>;

/** The last report of a living process on its trackers. */
export type TrackerReport = Readonly<z.infer<typeof trackerSchema>>;

const trackersFolder = (dataDir: string): string => join(dataDir, 'trackers');

/** The last reports of a data folder's living processes on their trackers; those of dead ones are passed over. Changes nothing. */
export async function trackerReports(dataDir: string): Promise<readonly TrackerReport[]> {
  return (await livingOwners(trackersFolder(dataDir), trackerSchema)).sort((a, b) => a.pid - b.pid);
}

/**
 * The file in which one client reports what it tracks. It appears with the first report, always whole, and goes with `remove`; the reports of processes
 * that were killed go with the next client's first one.
 */
export class TrackerReportFile {
  readonly #folder: string;
  readonly #what: string;
  readonly #path: string;
  #begun = false;

  constructor(dataDir: string, what: string) {
    this.#folder = trackersFolder(dataDir);
    this.#what = what;
    this.#path = join(this.#folder, `${process.pid}-${randomBytes(4).toString('hex')}.json`);
  }

  /** Replaces the last report. Rejects where the folder cannot be written. */
  async write(state: TrackerState): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await removeDeadFiles(this.#folder, trackerSchema);
    }
    const report: TrackerReport = { ...(await identifySelf()), what: this.#what, at: new Date().toISOString(), ...state };
    await replaceFile(this.#path, JSON.stringify(report));
  }

  /** Idempotent. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}

const troubleSchema = z.object({
  what: z.string(),
  pid: z.int().positive(),
  /** With the pid it tells the process from a later one; files of earlier versions lack it. */
  started: z.string().min(1).optional(),
  session: z.string(),
  /** Model calls that went out with the harness's own prompt because ours was late or failed. */
  passedThrough: z.int().nonnegative(),
  /** When the last of them went out. */
  at: z.iso.datetime(),
  /** Why the last of them did. */
  reason: z.string(),
});

/** What a harness with our context in its loop writes about the model calls that it had to make without it. */
export type LoopTroubleFile = Readonly<z.infer<typeof troubleSchema>>;

/** The report of a harness on model calls without our context. */
export interface LoopTrouble extends Omit<LoopTroubleFile, 'started'> {
  /** Whether the harness's process still runs. */
  readonly isRunning: boolean;
}

/** How long the report of a process that ended is shown after its last bypassed call: a run of one command ends before somebody asks doctor. */
const SHOWN_AFTER_END_MS = 3_600_000;

/** The reports of a data folder's harnesses, one a process, the latest first; of processes that ended only those of the last hour. Changes nothing. */
export async function loopTroubles(dataDir: string, now = Date.now()): Promise<readonly LoopTrouble[]> {
  const files = await readJsonFiles(join(dataDir, 'loops'), troubleSchema);
  const troubles = await Promise.all(
    files.map(async ({ started, ...trouble }) => ({
      ...trouble,
      isRunning: started !== undefined && (await isAlive({ pid: trouble.pid, started })),
    })),
  );
  const isShown = ({ isRunning, at }: LoopTrouble): boolean => isRunning || now - Date.parse(at) < SHOWN_AFTER_END_MS;
  return troubles.filter(isShown).toSorted((a, b) => (a.at < b.at ? 1 : -1));
}
