import { createHash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { defined } from '../../values/defined.js';
import { errorOf, messageOf } from '../../values/thrown.js';
import type { OpenDatabase } from '../policies/loop-policy.js';
import type { ContextPolicy } from '../policies/policy.js';
import { tableOf } from '../prices/price-table.js';
import { calibrate } from '../scorecard/calibration.js';
import { type PolicyScore, Scorer } from '../scorecard/score.js';
import { type NeededLines, neededLines } from '../timeline/needed-lines.js';
import { type RecordedTimelines, readTimelines } from '../timeline/read-timelines.js';
import type { Timeline } from '../timeline/timeline.js';
import type { LabConfig } from './lab-config.js';
import type { LabSession, SessionPolicy } from './lab-report.js';

/**
 * A fact that scoring found about a recording. Facts are reported in the order in which they were
 * found.
 */
export type LabFinding =
  | { readonly kind: 'session'; readonly session: LabSession }
  /** A session with too few model calls. */
  | { readonly kind: 'short' }
  | { readonly kind: 'failure'; readonly error: Error }
  | { readonly kind: 'progress'; readonly line: string }
  /** The time that a policy took to make the requests of a session. */
  | { readonly kind: 'time'; readonly policy: string; readonly calls: number; readonly ms: number };

/** The laboratory run that a recording belongs to. The run may be in another thread. */
export interface LabHost {
  /** Returns true if no earlier recording of the run has these bytes. */
  isNew(sha256: string): boolean | Promise<boolean>;
  /** Opens the database to which our own policies write new sessions. */
  readonly open: OpenDatabase;
  /**
   * Makes new sessions use an empty database, so that a second attempt does not find the steps of
   * the first.
   */
  renew(): void;
  /** Stores a fact about a recording. */
  found(path: string, finding: LabFinding): void;
  /** Aborts the work. */
  readonly signal?: AbortSignal | undefined;
}

/** Maximum number of attempts to run a policy on a session. */
const MOST_ATTEMPTS = 2;

/** A session of a recording, with its number `nth` in the recording. */
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
  { config, signal }: { readonly config: LabConfig; readonly signal: AbortSignal | undefined },
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

/** Returns a session's name, which contains no recorded text. */
const nameOf = ({ format }: Timeline, sha256: string, nth: number): string =>
  `${format} ${sha256.slice(0, 8)}${nth === 0 ? '' : `.${nth + 1}`}`;

/**
 * Returns a hash that identifies a session's project. Folders of the same name are one project, on
 * any machine. Sessions without a folder are grouped by recording.
 */
const groupOf = ({ cwd }: Timeline, sha256: string): string =>
  cwd === undefined
    ? sha256.slice(0, 8)
    : createHash('sha256')
        .update(cwd.split(/[/\\]/).findLast((segment) => segment !== '') ?? cwd)
        .digest('hex')
        .slice(0, 8);

/** Returns the reasons why a session's figures are limited. */
function marksOf(timeline: Timeline, hasCounts: boolean): readonly string[] {
  const { calls, compactions, unknownRewinds, copiedCalls } = timeline;
  const first = compactions[0]?.before;
  return [
    ...(first === undefined
      ? []
      : [`figures of other policies are bounds from call ${first} on: the recorded model had a summary`]),
    ...(copiedCalls === 0 ? [] : [`${copiedCalls} calls were made in the session that it was forked from`]),
    ...(unknownRewinds === 0 ? [] : [`${unknownRewinds} rewinds that do not say how far they went`]),
    ...(calls.some(({ at }) => at === undefined) ? ['no clock: its cache is assumed to stay warm'] : []),
    ...(hasCounts ? [] : ['no counts: system prompt and tools are missing from its cost']),
  ];
}

/** Reads recordings and scores their sessions. */
export class RecordingScorer {
  readonly #policies: readonly ContextPolicy[];
  readonly #config: LabConfig;
  readonly #host: LabHost;

  constructor(policies: readonly ContextPolicy[], config: LabConfig, host: LabHost) {
    this.#policies = policies;
    this.#config = config;
    this.#host = host;
  }

  /** Reads one recording and scores its sessions. */
  async recording(path: string): Promise<void> {
    const { signal } = this.#host;
    const failed = (error: unknown): undefined => {
      if (signal?.aborted !== true) this.#host.found(path, { kind: 'failure', error: errorOf(error) });
    };
    const read = await readTimelines(path, signal).catch(failed);
    if (read === undefined || !(await this.#host.isNew(read.sha256))) return;
    for (const [nth, timeline] of read.timelines.entries()) {
      const session = await this.#session({ timeline, path, nth }, read).catch(failed);
      if (session !== undefined) this.#host.found(path, { kind: 'session', session });
    }
  }

  async #session({ timeline, path, nth }: ReadSession, read: RecordedTimelines): Promise<LabSession | undefined> {
    if (timeline.calls.length < this.#config.least) {
      this.#host.found(path, { kind: 'short' });
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

  /**
   * Scores a policy on a session. If this fails, for example because the database is slow, tries
   * once more.
   */
  async #compare(policy: ContextPolicy, scored: Scored): Promise<SessionPolicy> {
    const { path } = scored;
    const { signal } = this.#host;
    signal?.throwIfAborted();
    const unsupported = await policy.unsupported?.(scored.timeline);
    if (unsupported !== undefined) return { unsupported };
    const what = `${scored.name}, ${policy.name}`;
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
      try {
        const { score, ms } = await scoreOne(policy, scored, { config: this.#config, signal });
        this.#host.found(path, { kind: 'time', policy: policy.name, calls: score.calls, ms });
        return { score };
      } catch (error) {
        signal?.throwIfAborted();
        this.#host.renew();
        if (attempt < MOST_ATTEMPTS) {
          this.#host.found(path, { kind: 'progress', line: `${what}: ${messageOf(error)}: trying once more` });
          continue;
        }
        const why = `${what}: failed twice: ${messageOf(error)}: the report lacks this row; run the recording again`;
        this.#host.found(path, { kind: 'failure', error: new Error(why, { cause: error }) });
      }
    }
    return { unsupported: 'its run failed twice' };
  }
}
