import { createHash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import pLimit from 'p-limit';
import { defined } from '../../values/defined.js';
import { errorOf, messageOf } from '../../values/thrown.js';
import type { OpenDatabase } from '../policies/loop-policy.js';
import type { ContextPolicy } from '../policies/policy.js';
import { tableOf } from '../prices/price-table.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { calibrate } from '../scorecard/calibration.js';
import { type PolicyScore, Scorer } from '../scorecard/score.js';
import { type NeededLines, neededLines } from '../timeline/needed-lines.js';
import { type RecordedTimelines, readTimelines } from '../timeline/read-timelines.js';
import type { Timeline } from '../timeline/timeline.js';
import type { LabConfig } from './lab-config.js';
import type { LabReport, LabSession, LabTimes, SessionPolicy } from './lab-report.js';
import { makeReport } from './make-report.js';
import { policiesOf } from './policy-table.js';

/** Options of a laboratory run. */
export interface LabOptions {
  readonly config: LabConfig;
  /** Opens a database for our own policies, which write to it. It is closed at the end. */
  readonly open: OpenDatabase;
  /** Number of recordings that are read and scored in parallel; 1 if omitted. */
  readonly jobs?: number;
  readonly onProgress?: (line: string) => void;
  /** If it aborts, the report has the sessions that are complete by then. */
  readonly signal?: AbortSignal;
  /** The paths on which settings are chosen, if the user named them. Others are for the test. */
  readonly train?: ReadonlySet<string>;
}

/** A laboratory run: its reproducible report, and the times it took. */
export interface LabRun {
  readonly report: LabReport;
  readonly times: LabTimes;
  /** Recordings that could not be read or scored, with the errors. The report has the others. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
}

/** Runs of a policy on a session: the first, and one more if it fails. */
const MOST_ATTEMPTS = 2;

/** A session of a recording: the `nth` in it. */
interface ReadSession {
  readonly timeline: Timeline;
  readonly path: string;
  readonly nth: number;
}

interface Scored {
  readonly name: string;
  readonly path: string;
  readonly timeline: Timeline;
  readonly needed: NeededLines;
  readonly fixed: number;
}

async function scoreOne(
  policy: ContextPolicy,
  { timeline, needed, fixed }: Scored,
  { config, signal }: LabOptions,
): Promise<{ readonly score: PolicyScore; readonly ms: number }> {
  const scorer = new Scorer(timeline, { policy, needed, window: config.window, fixed });
  let ms = 0;
  let from = performance.now();
  for await (const request of policy.requests(timeline)) {
    ms += performance.now() - from;
    signal?.throwIfAborted();
    scorer.take(request);
    from = performance.now();
  }
  return { score: scorer.finish(), ms };
}

/** Returns the name of a session, without recorded text. */
const nameOf = ({ format }: Timeline, sha256: string, nth: number): string =>
  `${format} ${sha256.slice(0, 8)}${nth === 0 ? '' : `.${nth + 1}`}`;

/**
 * Returns the project of a session without its name: folders of one name are one project, on any
 * machine. Sessions of a recording without a folder belong together.
 */
const groupOf = ({ cwd }: Timeline, sha256: string): string =>
  cwd === undefined
    ? sha256.slice(0, 8)
    : createHash('sha256')
        .update(cwd.split(/[/\\]/).findLast((segment) => segment !== '') ?? cwd)
        .digest('hex')
        .slice(0, 8);

/** Returns why the whole session's figures are limited. */
function marksOf(timeline: Timeline, hasCounts: boolean): readonly string[] {
  const { calls, compactions, unknownRewinds, copiedCalls } = timeline;
  const first = compactions[0]?.before;
  return [
    ...(first === undefined
      ? []
      : [`other policies are bounds from call ${first} on: the recorded model had a summary`]),
    ...(copiedCalls === 0 ? [] : [`${copiedCalls} calls were made in the session that it was forked from`]),
    ...(unknownRewinds === 0 ? [] : [`${unknownRewinds} rewinds that do not say how far they went`]),
    ...(calls.some(({ at }) => at === undefined) ? ['no clock: its cache is taken to live'] : []),
    ...(hasCounts ? [] : ['no counts: system prompt and tools are missing from its cost']),
  ];
}

/** The databases of a laboratory run. One serves all sessions until a session fails in it. */
class LabDatabases {
  readonly #make: OpenDatabase;
  readonly #all: Promise<ReplayDatabase>[] = [];
  #current: Promise<ReplayDatabase> | undefined;

  constructor(make: OpenDatabase) {
    this.#make = make;
  }

  /** Returns the database of the sessions that begin now. */
  readonly open: OpenDatabase = () => {
    if (this.#current === undefined) {
      this.#current = this.#make();
      this.#all.push(this.#current);
    }
    return this.#current;
  };

  /**
   * Gives sessions that begin from now on an empty database. A session that is repeated must not
   * find the steps of its first attempt.
   */
  renew(): void {
    this.#current = undefined;
  }

  /** Closes all of them. */
  async close(): Promise<void> {
    await Promise.all(this.#all.map(async (one) => (await one.catch(() => undefined))?.close()));
  }
}

/** The work of one run. */
class LabWork {
  readonly sessions: LabSession[] = [];
  readonly failures: LabRun['failures'][number][] = [];
  readonly times = new Map<string, { calls: number; ms: number }>();
  readonly seen = new Set<string>();
  readonly train = new Set<string>();
  leftOut = 0;
  done = 0;
  readonly #policies: readonly ContextPolicy[];
  readonly #databases: LabDatabases;
  readonly #options: LabOptions;
  readonly #total: number;

  constructor(
    policies: readonly ContextPolicy[],
    databases: LabDatabases,
    { options, count }: { readonly options: LabOptions; readonly count: number },
  ) {
    this.#policies = policies;
    this.#databases = databases;
    this.#options = options;
    this.#total = count;
  }

  /** Reads one recording and scores its sessions. */
  async recording(path: string): Promise<void> {
    const { signal, onProgress } = this.#options;
    if (signal?.aborted) return;
    const read = await readTimelines(path, signal).catch((error: unknown) => {
      if (signal?.aborted !== true) this.failures.push({ path, error: errorOf(error) });
      return undefined;
    });
    if (read !== undefined && !this.seen.has(read.sha256)) {
      this.seen.add(read.sha256);
      for (const [nth, timeline] of read.timelines.entries()) {
        const session = await this.#session({ timeline, path, nth }, read).catch((error: unknown) => {
          if (signal?.aborted !== true) this.failures.push({ path, error: errorOf(error) });
          return undefined;
        });
        if (session === undefined) continue;
        this.sessions.push(session);
        if (this.#options.train?.has(path)) this.train.add(session.name);
      }
    }
    if (signal?.aborted) return;
    this.done += 1;
    onProgress?.(`${this.done}/${this.#total} ${path}`);
  }

  async #session({ timeline, path, nth }: ReadSession, read: RecordedTimelines): Promise<LabSession | undefined> {
    if (timeline.calls.length < this.#options.config.least) {
      this.leftOut += 1;
      return undefined;
    }
    const calibration = calibrate(timeline);
    const fixed = calibration?.fixed ?? 0;
    const name = nameOf(timeline, read.sha256, nth);
    const scored = { name, path, timeline, needed: neededLines(timeline), fixed };
    const results: (readonly [string, SessionPolicy])[] = [];
    for (const policy of this.#policies) results.push([policy.name, await this.#compare(policy, scored)]);
    return {
      name,
      group: groupOf(timeline, read.sha256),
      format: timeline.format,
      calls: timeline.calls.length,
      turns: timeline.calls.filter(({ opensTurn }) => opensTurn).length,
      items: timeline.items.length,
      priceTable: tableOf(timeline.model).name,
      complete: read.complete,
      losses: read.losses.total,
      fixed,
      marks: marksOf(timeline, calibration !== undefined),
      ...defined({ calibration }),
      policies: Object.fromEntries(results),
    };
  }

  /** Scores a policy on a session. If its run fails, as in a slow database, it runs once more. */
  async #compare(policy: ContextPolicy, scored: Scored): Promise<SessionPolicy> {
    const { signal, onProgress } = this.#options;
    signal?.throwIfAborted();
    const unsupported = policy.unsupported?.(scored.timeline);
    if (unsupported !== undefined) return { unsupported };
    const what = `${scored.name}, ${policy.name}`;
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      try {
        const { score, ms } = await scoreOne(policy, scored, this.#options);
        const time = this.times.get(policy.name) ?? { calls: 0, ms: 0 };
        this.times.set(policy.name, { calls: time.calls + score.calls, ms: time.ms + ms });
        return { score };
      } catch (error) {
        signal?.throwIfAborted();
        this.#databases.renew();
        if (attempt < MOST_ATTEMPTS) {
          onProgress?.(`${what}: ${messageOf(error)}: trying once more`);
          continue;
        }
        const why = `${what}: failed twice: ${messageOf(error)}: the report lacks this row; run the recording again`;
        this.failures.push({ path: scored.path, error: new Error(why, { cause: error }) });
      }
    }
    return { unsupported: 'its run failed twice' };
  }
}

/**
 * Compares policies on recorded sessions without a model. Recordings with equal bytes count once.
 * Sessions with too few model calls are excluded and counted. The report contains no recorded text.
 * @throws the reason of an aborted `signal` if no session was complete by then
 */
export async function runLab(paths: readonly string[], options: LabOptions): Promise<LabRun> {
  const { config, signal, train } = options;
  const databases = new LabDatabases(options.open);
  const policies = await policiesOf(config.policies, async () => {
    signal?.throwIfAborted();
    return databases.open();
  });
  const work = new LabWork(policies, databases, { options, count: paths.length });
  const limit = pLimit(options.jobs ?? 1);
  try {
    const all = paths.map((path) => limit(() => work.recording(path)));
    // Where one fails, the others end before their database is closed.
    await Promise.allSettled(all);
    await Promise.all(all);
  } finally {
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
