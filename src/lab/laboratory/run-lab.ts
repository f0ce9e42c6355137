import { createHash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import pLimit from 'p-limit';
import { PRICES_AS_OF } from '../../assembly/epoch/prices.js';
import { defined } from '../../values/defined.js';
import { errorOf } from '../../values/thrown.js';
import type { OpenDatabase } from '../policies/loop-policy.js';
import type { ContextPolicy } from '../policies/policy.js';
import { raw } from '../policies/raw.js';
import { isCold, PRICE_TABLES, requestCost, tableOf } from '../prices/price-table.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { calibrate } from '../scorecard/calibration.js';
import { crossValidate } from '../scorecard/cross-validation.js';
import { pooledScore, type ScoredPair } from '../scorecard/pooled.js';
import { type PolicyScore, Scorer } from '../scorecard/score.js';
import { type NeededLines, neededLines } from '../timeline/needed-lines.js';
import { readTimelines } from '../timeline/read-timelines.js';
import type { Timeline } from '../timeline/timeline.js';
import type { LabConfig } from './lab-config.js';
import type { LabReport, LabSession, LabTimes, SessionPolicy } from './lab-report.js';
import { policiesOf } from './policy-table.js';

/** Options of a laboratory run. */
export interface LabOptions {
  readonly config: LabConfig;
  /**
   * Opens a database for our own policies, which write to it. It is closed after each recording.
   */
  readonly open: OpenDatabase;
  /** Number of policies run in parallel; 1 if omitted. */
  readonly jobs?: number;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/** A laboratory run: its reproducible report, and the times it took. */
export interface LabRun {
  readonly report: LabReport;
  readonly times: LabTimes;
  /** Recordings that could not be read, with the errors. */
  readonly failures: readonly { readonly path: string; readonly error: Error }[];
}

interface Scored {
  readonly timeline: Timeline;
  readonly needed: NeededLines;
}

async function scoreOne(
  policy: ContextPolicy,
  { timeline, needed }: Scored,
  { config, signal }: LabOptions,
): Promise<{ readonly score: PolicyScore; readonly ms: number }> {
  const scorer = new Scorer(timeline, {
    reach: policy.reach,
    needed,
    window: config.window,
    asRecorded: policy.asRecorded ?? false,
  });
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
 * Returns the cost of a constant text in front of every request of a session, under the first
 * table.
 */
function fixedCostOf({ calls }: Timeline, fixed: number): number {
  const [table] = PRICE_TABLES;
  const size = Math.max(0, fixed);
  return calls.reduce(
    (sum, call, at) => sum + requestCost(table, { size, same: isCold(table, call, calls[at - 1]) ? 0 : size }),
    0,
  );
}

/** Returns why the whole session's figures are limited. */
function marksOf(timeline: Timeline): readonly string[] {
  const { calls, compactions, unknownRewinds, copiedCalls } = timeline;
  const first = compactions[0]?.before;
  return [
    ...(first === undefined ? [] : [`out of support from call ${first} on: the recorded model had a summary there`]),
    ...(copiedCalls === 0 ? [] : [`${copiedCalls} calls were made in the session that it was forked from`]),
    ...(unknownRewinds === 0 ? [] : [`${unknownRewinds} rewinds that do not say how far they went`]),
    ...(calls.some(({ at }) => at === undefined) ? ['no clock: its cache is taken to live'] : []),
  ];
}

/**
 * Compares policies on recorded sessions without a model. Recordings with equal bytes count once.
 * Sessions with too few model calls are excluded and counted. The report contains no recorded text.
 * @throws the reason of an aborted `signal`
 */
export async function runLab(paths: readonly string[], options: LabOptions): Promise<LabRun> {
  const { config, onProgress, signal } = options;
  let database: Promise<ReplayDatabase> | undefined;
  const policies = await policiesOf(config.policies, async () => {
    signal?.throwIfAborted();
    database ??= options.open();
    return database;
  });
  const closeDatabase = async (): Promise<void> => {
    const opened = database;
    database = undefined;
    await (await opened)?.close();
  };
  const sessions: LabSession[] = [];
  const failures: LabRun['failures'][number][] = [];
  const times = new Map(policies.map(({ name }) => [name, { calls: 0, ms: 0 }]));
  const limit = pLimit(options.jobs ?? 1);
  const seen = new Set<string>();
  let leftOut = 0;
  for (const [at, path] of paths.entries()) {
    signal?.throwIfAborted();
    onProgress?.(`${at + 1}/${paths.length} ${path}`);
    const read = await readTimelines(path, signal).catch((error: unknown) => {
      signal?.throwIfAborted();
      failures.push({ path, error: errorOf(error) });
      return undefined;
    });
    if (read === undefined || seen.has(read.sha256)) continue;
    seen.add(read.sha256);
    try {
      for (const [nth, timeline] of read.timelines.entries()) {
        if (timeline.calls.length < config.least) {
          leftOut += 1;
          continue;
        }
        const scored = { timeline, needed: neededLines(timeline) };
        const name = nameOf(timeline, read.sha256, nth);
        const compare = async (policy: ContextPolicy): Promise<readonly [string, SessionPolicy]> => {
          signal?.throwIfAborted();
          const reason = policy.unsupported?.(timeline);
          if (reason !== undefined) return [policy.name, { unsupported: reason }];
          onProgress?.(`${at + 1}/${paths.length} ${name}: ${policy.name}`);
          const { score, ms } = await scoreOne(policy, scored, options);
          const time = times.get(policy.name) ?? { calls: 0, ms: 0 };
          times.set(policy.name, { calls: time.calls + score.calls, ms: time.ms + ms });
          return [policy.name, { score }];
        };
        const scoring = policies.map((policy) => limit(() => compare(policy)));
        // Where one fails, the others end before their database is closed.
        await Promise.allSettled(scoring);
        const results = await Promise.all(scoring);
        const calibration = calibrate(timeline);
        sessions.push({
          name,
          format: timeline.format,
          calls: timeline.calls.length,
          turns: timeline.calls.filter(({ opensTurn }) => opensTurn).length,
          items: timeline.items.length,
          priceTable: tableOf(timeline.model).name,
          complete: read.complete,
          losses: read.losses.total,
          marks: marksOf(timeline),
          fixedCost: fixedCostOf(timeline, calibration?.fixed ?? 0),
          ...defined({ calibration }),
          policies: Object.fromEntries(results),
        });
      }
    } finally {
      await closeDatabase();
    }
  }
  sessions.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return {
    report: reportOf(sessions, policies, { config, leftOut, hashes: [...seen] }),
    times: Object.fromEntries(times),
    failures,
  };
}

function pairsOf(sessions: readonly LabSession[], policy: string): readonly ScoredPair[] {
  return sessions.flatMap(({ name, policies, fixedCost }) => {
    const [own, base] = [policies[policy]?.score, policies[raw.name]?.score];
    return own === undefined || base === undefined ? [] : [{ session: name, raw: base, own, fixedCost }];
  });
}

function reportOf(
  sessions: readonly LabSession[],
  policies: readonly ContextPolicy[],
  {
    config,
    leftOut,
    hashes,
  }: { readonly config: LabConfig; readonly leftOut: number; readonly hashes: readonly string[] },
): LabReport {
  const own = policies
    .filter(({ family }) => family === 'own')
    .map(({ name }) => ({ name, pairs: pairsOf(sessions, name) }));
  return {
    report: 'laboratory',
    version: 1,
    corpus: createHash('sha256')
      .update([...hashes].sort().join('\n'))
      .digest('hex'),
    recordings: hashes.length,
    leftOut,
    config,
    prices: {
      asOf: PRICES_AS_OF,
      tables: PRICE_TABLES.map(({ name, models, read, write, lifetimeMs }) => ({
        name,
        models: models.source,
        read,
        write,
        lifetimeMs,
      })),
    },
    policies: policies.map(({ name, family, about, reach }) => ({
      name,
      family,
      about,
      reach,
      ...defined({ pooled: pooledScore(pairsOf(sessions, name)) }),
    })),
    sessions,
    ...defined({ crossValidation: crossValidate(own) }),
  };
}
