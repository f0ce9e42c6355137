import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { livingOwners, readJsonFiles, removeDeadFiles, replaceFile } from './owned-file.js';
import { identifySelf, isAlive, processIdentitySchema } from './process-identity.js';
import { systemCode } from './system-error.js';

const stateSchema = z.object({
  /** Sources that are watched for changes. */
  attached: z.int().nonnegative(),
  /** Sources that are unreadable or not tracked. */
  orphaned: z.int().nonnegative(),
  /** Sessions whose sources are still being checked. */
  resuming: z.int().nonnegative(),
  /** Folders that are only polled because the system has no watch left for them. */
  sweptFolders: z.int().nonnegative(),
  /** Some of the unreadable sources, each with the reason. */
  unreadable: z.array(z.object({ path: z.string(), reason: z.string() })),
});

const trackerSchema = processIdentitySchema.extend({
  what: z.string(),
  /** Time of the report. */
  at: z.iso.datetime(),
  ...stateSchema.shape,
});

/** The sources that a process tracks [§5.9], as other processes may see them. */
export type TrackerState = Readonly<z.infer<typeof stateSchema>>;

/** The last tracker report of a living process. */
export type TrackerReport = Readonly<z.infer<typeof trackerSchema>>;

const trackersFolder = (dataDir: string): string => join(dataDir, 'trackers');

/**
 * Returns the last tracker reports of a data folder's living processes. Skips dead processes.
 * Read-only.
 */
export async function trackerReports(dataDir: string): Promise<readonly TrackerReport[]> {
  return (await livingOwners(trackersFolder(dataDir), trackerSchema)).sort((a, b) => a.pid - b.pid);
}

/**
 * The file in which one client reports its tracked sources. It appears with the first report, is
 * always whole, and disappears with `remove`. The next client's first report removes the files of
 * killed processes.
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

  /** Replaces the last report. Rejects if the data folder is not writable, or is gone. */
  async write(state: TrackerState): Promise<void> {
    if (!this.#begun) {
      // Creates only this folder, so that a deleted data folder is not created again.
      await mkdir(this.#folder, { mode: 0o700 }).catch((error: unknown) => {
        if (systemCode(error) !== 'EEXIST') throw error;
      });
      this.#begun = true;
      await removeDeadFiles(this.#folder, trackerSchema);
    }
    const report: TrackerReport = {
      ...(await identifySelf()),
      what: this.#what,
      at: new Date().toISOString(),
      ...state,
    };
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
  /** The start of the process, see `ProcessIdentity`. Absent in files of earlier versions. */
  started: z.string().min(1).optional(),
  session: z.string(),
  /** Model calls that used the harness's own prompt because our context was late or failed. */
  passedThrough: z.int().nonnegative(),
  /** Time of the last such call. */
  at: z.iso.datetime(),
  /** Reason of the last such call. */
  reason: z.string(),
});

/** A harness's report file on the model calls that it made without our context. */
export type LoopTroubleFile = Readonly<z.infer<typeof troubleSchema>>;

/** A harness's report on the model calls that it made without our context. */
export interface LoopTrouble extends Omit<LoopTroubleFile, 'started'> {
  /** Whether the harness's process still runs. */
  readonly isRunning: boolean;
}

/**
 * Time in milliseconds after the last reported call for which an ended process is still shown. A
 * harness that runs one command ends before its user runs doctor.
 */
const SHOWN_AFTER_END_MS = 3_600_000;

/**
 * Returns the reports of a data folder's harnesses, one per process, latest first. Reports of ended
 * processes are limited to the last hour. Read-only.
 */
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
