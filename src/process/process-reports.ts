import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { z } from 'zod';
import { identifySelf, isAlive, processIdentitySchema } from './process-identity.js';
import { systemCode } from './system-error.js';

const stateSchema = z.object({
  /** Sources whose changes are noticed. */
  attached: z.int().nonnegative(),
  /** Sources without a tracker or that cannot be read. */
  orphaned: z.int().nonnegative(),
  /** Sessions whose sources are still being looked at. */
  resuming: z.int().nonnegative(),
  /** Folders that are only looked at from time to time, for want of watches. */
  sweptFolders: z.int().nonnegative(),
  /** Some of the sources that could not be read, each with the reason. */
  unreadable: z.array(z.object({ path: z.string(), reason: z.string() })),
});

const reportSchema = processIdentitySchema.extend({
  what: z.string(),
  /** When it was written. */
  at: z.iso.datetime(),
  ...stateSchema.shape,
});

/** What a process tracks [§5.9], for whoever looks from outside. */
export type TrackerState = Readonly<z.infer<typeof stateSchema>>;

/** What a living process said last of its trackers. */
export type TrackerReport = Readonly<z.infer<typeof reportSchema>>;

const reportsFolder = (dataDir: string): string => join(dataDir, 'trackers');

async function reportFiles(dataDir: string): Promise<readonly string[]> {
  const folder = reportsFolder(dataDir);
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  return names.map((name) => join(folder, name));
}

async function readReport(path: string): Promise<TrackerReport | undefined> {
  try {
    return reportSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    // Gone meanwhile, or left half-made by a process that was killed: nobody is behind it.
    return undefined;
  }
}

async function livingReport(path: string): Promise<TrackerReport | undefined> {
  const report = await readReport(path);
  return report !== undefined && (await isAlive(report)) ? report : undefined;
}

/** What the living processes of a data folder said last of their trackers; what dead ones left behind is passed over. Changes nothing. */
export async function trackerReports(dataDir: string): Promise<readonly TrackerReport[]> {
  const reports = await Promise.all((await reportFiles(dataDir)).map(livingReport));
  return reports.flatMap((report) => report ?? []).sort((a, b) => a.pid - b.pid);
}

/**
 * The file in which one client tells what it tracks. It appears with the first report, always whole, and goes with `remove`; reports of processes
 * that were killed go with the next client's first one.
 */
export class TrackerReportFile {
  readonly #dataDir: string;
  readonly #what: string;
  readonly #path: string;
  #begun = false;

  constructor(dataDir: string, what: string) {
    this.#dataDir = dataDir;
    this.#what = what;
    this.#path = join(reportsFolder(dataDir), `${process.pid}-${randomBytes(4).toString('hex')}.json`);
  }

  /** Replaces what was told before. Rejects where the folder cannot be written. */
  async write(state: TrackerState): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      await mkdir(reportsFolder(this.#dataDir), { recursive: true, mode: 0o700 });
      for (const path of await reportFiles(this.#dataDir)) if ((await livingReport(path)) === undefined) await rm(path, { force: true });
    }
    const report: TrackerReport = { ...(await identifySelf()), what: this.#what, at: new Date().toISOString(), ...state };
    // Of use only as long as the process lives, so it need not outlive a loss of power.
    await writeFileAtomic(this.#path, JSON.stringify(report), { mode: 0o600, fsync: false });
  }

  /** Idempotent. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}

const troubleSchema = z.object({
  what: z.string(),
  pid: z.int().positive(),
  session: z.string(),
  /** Model calls that went out with the harness's own prompt because ours was late or failed. */
  passedThrough: z.int().nonnegative(),
  /** The last of them, and why. */
  at: z.iso.datetime(),
  reason: z.string(),
});

/** What a harness with a context of ours in its loop had to do without it. */
export type LoopTrouble = Readonly<z.infer<typeof troubleSchema>>;

/** Where harnesses tell of it, one file per process. */
export const troublesFolder = (dataDir: string): string => join(dataDir, 'loops');

/** What harnesses told last, the latest first; also of those that ended. What cannot be read is passed over. Changes nothing. */
export async function loopTroubles(dataDir: string): Promise<readonly LoopTrouble[]> {
  const folder = troublesFolder(dataDir);
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const read = async (name: string): Promise<readonly LoopTrouble[]> => {
    try {
      return [troubleSchema.parse(JSON.parse(await readFile(join(folder, name), 'utf8')))];
    } catch {
      // Half-made, or gone meanwhile.
      return [];
    }
  };
  return (await Promise.all(names.map(read))).flat().sort((a, b) => (a.at < b.at ? 1 : -1));
}
