import { stat } from 'node:fs/promises';
import pLimit from 'p-limit';
import type { OpenDatabase } from '../policies/loop-policy.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import type { LabConfig } from './lab-config.js';
import type { LabReport, LabSession, LabTimes } from './lab-report.js';
import { LabThreads } from './lab-threads.js';
import { makeReport } from './make-report.js';
import { policiesOf } from './policy-table.js';
import { type LabFinding, type LabHost, RecordingScorer } from './score-recording.js';

/** Options of a laboratory run. */
export interface LabOptions {
  readonly config: LabConfig;
  /** Opens a database to which our own policies write. The run closes it at the end. */
  readonly open: OpenDatabase;
  /** Number of recordings that are scored in parallel; 1 if omitted. */
  readonly jobs?: number;
  /** The path of the program for worker threads. If omitted, this thread does all the work. */
  readonly worker?: string | undefined;
  readonly onProgress?: (line: string) => void;
  /** If the signal aborts, the report has only the sessions that are complete at that time. */
  readonly signal?: AbortSignal;
  /**
   * The paths of the training recordings, if the user named them. All other recordings are for the
   * test.
   */
  readonly train?: ReadonlySet<string>;
}

/** The result of a laboratory run: its reproducible report and the measured times. */
export interface LabRun {
  readonly report: LabReport;
  readonly times: LabTimes;
  /** Recordings that could not be read or scored, with the errors. The report covers the others. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
}

/** The databases of a laboratory run. All sessions share one until a session fails in it. */
class LabDatabases {
  readonly #make: OpenDatabase;
  readonly #all: Promise<ReplayDatabase>[] = [];
  #current: Promise<ReplayDatabase> | undefined;

  constructor(make: OpenDatabase) {
    this.#make = make;
  }

  /** Returns the database for new sessions. */
  readonly open: OpenDatabase = () => {
    if (this.#current === undefined) {
      this.#current = this.#make();
      this.#all.push(this.#current);
    }
    return this.#current;
  };

  /**
   * Makes new sessions use an empty database, so that a second attempt does not find the steps of
   * the first.
   */
  renew(): void {
    this.#current = undefined;
  }

  /** Closes all databases. */
  async close(): Promise<void> {
    await Promise.all(this.#all.map(async (one) => (await one.catch(() => undefined))?.close()));
  }
}

/** The state of one run: collects the findings about the recordings. */
class LabWork implements LabHost {
  readonly sessions: LabSession[] = [];
  readonly failures: LabRun['failures'][number][] = [];
  readonly times = new Map<string, { readonly calls: number; readonly ms: number }>();
  readonly seen = new Set<string>();
  readonly train = new Set<string>();
  readonly open: OpenDatabase;
  readonly signal: AbortSignal | undefined;
  leftOut = 0;
  done = 0;
  readonly #databases: LabDatabases;
  readonly #options: LabOptions;
  readonly #total: number;

  constructor(databases: LabDatabases, { options, count }: { readonly options: LabOptions; readonly count: number }) {
    this.#databases = databases;
    this.#options = options;
    this.#total = count;
    this.signal = options.signal;
    this.open = async () => {
      this.signal?.throwIfAborted();
      return databases.open();
    };
  }

  isNew(sha256: string): boolean {
    if (this.seen.has(sha256)) return false;
    this.seen.add(sha256);
    return true;
  }

  renew(): void {
    this.#databases.renew();
  }

  found(path: string, finding: LabFinding): void {
    if (finding.kind === 'session') {
      this.sessions.push(finding.session);
      if (this.#options.train?.has(path)) this.train.add(finding.session.name);
    } else if (finding.kind === 'short') this.leftOut += 1;
    else if (finding.kind === 'failure') this.failures.push({ path, error: finding.error });
    else if (finding.kind === 'progress') this.#options.onProgress?.(finding.line);
    else {
      const { policy, calls, ms } = finding;
      const time = this.times.get(policy) ?? { calls: 0, ms: 0 };
      this.times.set(policy, { calls: time.calls + calls, ms: time.ms + ms });
    }
  }

  /** Scores one recording, unless the run was aborted. */
  async recording(path: string, score: (path: string) => Promise<void>): Promise<void> {
    if (this.signal?.aborted) return;
    await score(path);
    if (this.signal?.aborted) return;
    this.done += 1;
    this.#options.onProgress?.(`${this.done}/${this.#total} ${path}`);
  }
}

/** Sorts recordings by size, the largest first, so that all threads end at about the same time. */
async function largestFirst(paths: readonly string[]): Promise<readonly string[]> {
  const size = (path: string): Promise<number> =>
    stat(path).then(
      (found) => found.size,
      () => 0,
    );
  const sized = await Promise.all(paths.map(async (path) => ({ path, size: await size(path) })));
  return sized.sort((a, b) => b.size - a.size).map(({ path }) => path);
}

/**
 * Compares policies on recorded sessions without a model. Recordings with equal bytes count once.
 * Sessions with too few model calls are excluded and counted. The report contains no recorded text.
 *
 * @throws the reason of an aborted `signal` if no session was complete by then
 */
export async function runLab(paths: readonly string[], options: LabOptions): Promise<LabRun> {
  const { config, signal, train, jobs = 1, worker } = options;
  const databases = new LabDatabases(options.open);
  const work = new LabWork(databases, { options, count: paths.length });
  const policies = policiesOf(config.policies, work.open);
  const threads = worker === undefined || jobs === 1 ? undefined : new LabThreads(worker, { config, host: work });
  const scorer = threads ?? new RecordingScorer(policies, config, work);
  const limit = pLimit(jobs);
  try {
    const all = (await largestFirst(paths)).map((path) =>
      limit(() => work.recording(path, (one) => scorer.recording(one))),
    );
    // If one job fails, the others finish before their database is closed.
    await Promise.allSettled(all);
    await Promise.all(all);
  } finally {
    await threads?.end();
    await databases.close();
  }
  const sessions = work.sessions.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  if (sessions.length === 0) signal?.throwIfAborted();
  const names = sessions.map(({ name }) => name);
  const named =
    train === undefined
      ? undefined
      : { train: work.train, test: new Set(names.filter((name) => !work.train.has(name))) };
  return {
    report: makeReport(sessions, policies, {
      config,
      leftOut: work.leftOut,
      missing: paths.length - work.done,
      hashes: [...work.seen],
      named,
    }),
    times: Object.fromEntries(work.times),
    failures: work.failures,
  };
}
