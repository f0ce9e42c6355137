import { cacheLifetimeMs, isHourCache, pauseEndsCache } from '../../assembly/epoch/prices.js';
import { fallOf, LEAST_COUNTED, SHORTENING } from '../../history/rebuild/counted-fall.js';
import { modelCallsOf, promptTokens } from '../../history/rebuild/model-calls.js';
import type { SessionRequest } from '../../history/rebuild/session-requests.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import type { PrefixDiff } from '../../review/ask/prefix-diff.js';
import { causeClause, grouped } from '../../review/ask/prefix-sentence.js';
import { type InheritedSteps, inheritedSteps } from '../../review/ask/session-calls.js';
import { countTokens } from '../../review/ask/token-count.js';
import { defined } from '../../values/defined.js';
import { askOnce } from '../../values/promises.js';

/** A model call that its provider counted. */
export interface CountedCall {
  /** Number among the session's model calls, from 1. */
  readonly number: number;
  readonly step: number;
  readonly turn: number;
  readonly at: number;
  readonly usage: ModelUsage;
  /** The last step of its request. If the request is not known, the step of the call itself. */
  readonly request: number;
  /** The step of the previous counted call; 0 for the first. */
  readonly before: number;
  /** Whether there is a record of its sent request. */
  readonly isSent: boolean;
  /** Prompt tokens outside of the cache that the previous request did not have. */
  readonly fresh: number;
  /** Prompt tokens that the previous request also had, but that were not read from the cache. */
  readonly again: number;
  /** How many prompt tokens more the previous request had. */
  readonly fewer: number;
  /** The model of the previous call, if it was a different model. */
  readonly modelBefore?: string;
  /** The lifetime of the cache that the previous calls left, in milliseconds. */
  readonly lifetimeMs: number;
  /** The earlier turn up to whose beginning the provider kept its cache, if tokens were lost. */
  readonly keptTo?: number;
}

/** The counted calls of a session, with its steps and records. */
export interface CountedSession {
  readonly steps: readonly Step[];
  readonly records: readonly AssemblyProof[];
  /** All calls in order, with those that its parent made. */
  readonly all: readonly CountedCall[];
  /** The session's own calls, in order. Calls in steps that a fork shares belong to its parent. */
  readonly calls: readonly CountedCall[];
  /** The steps of its parent at the beginning, with the number of its model calls there. */
  readonly inherited: InheritedSteps & { readonly calls: number };
}

type Counts = Pick<CountedCall, 'number' | 'step' | 'turn' | 'at' | 'usage' | 'request' | 'isSent'>;

/** The counts of a call, and whether the session made it itself. */
type OwnCounts = Counts & { readonly isOwn: boolean };

/** A compaction's summary, which is new text of the next request. */
interface Summary {
  readonly step: number;
  readonly tokens: number;
}

/**
 * The most tokens by which a provider rounds its cache down: it keeps whole blocks, and perhaps one
 * block less.
 */
const MOST_ROUNDED = 256;

/**
 * Compares each call with the previous one. A failed call, without a prompt, is skipped. Summaries
 * of compactions between two calls were not in the first one.
 */
export function comparedCalls<T extends Counts>(
  counts: readonly T[],
  summaries: readonly Summary[] = [],
): readonly (CountedCall & T)[] {
  let last: T | undefined;
  let isHour = false;
  /** The prompt of each turn's first call. */
  const begins = new Map<number, number>();
  return counts.map((one) => {
    const { cacheRead = 0 } = one.usage;
    const prompt = promptTokens(one.usage);
    const added = summaries
      .filter(({ step }) => step > (last?.step ?? 0) && step <= one.step)
      .reduce((sum, { tokens }) => sum + tokens, 0);
    const lost = last === undefined ? 0 : Math.min(promptTokens(last.usage), prompt - added) - cacheRead;
    // Ignores a small loss, because text that moved to the end also causes one.
    const again = lost < LEAST_COUNTED ? 0 : lost;
    const fewer = last === undefined || prompt === 0 ? 0 : fallOf(promptTokens(last.usage), prompt);
    const before = last?.step ?? 0;
    const { model } = one.usage;
    const modelBefore = model === undefined || last?.usage.model === model ? undefined : last?.usage.model;
    const lifetimeMs = cacheLifetimeMs(last?.usage.model ?? '', isHour);
    if (prompt > 0) last = one;
    isHour = isHourCache(one.usage, isHour);
    const fresh = Math.max(0, prompt - cacheRead - again);
    const isKept = ([, begin]: readonly [number, number]): boolean =>
      begin >= cacheRead && begin - cacheRead < MOST_ROUNDED;
    const keptTo = again === 0 ? undefined : [...begins].findLast(isKept)?.[0];
    if (prompt > 0 && !begins.has(one.turn)) begins.set(one.turn, prompt);
    return { ...one, before, again, fewer, fresh, lifetimeMs, ...defined({ modelBefore, keptTo }) };
  });
}

const counted = new WeakMap<Timeline, Map<SessionId, Promise<CountedSession>>>();

/**
 * Returns the model calls of a session that have a provider's counts. Cached by timeline, because a
 * page in a file asks for every call.
 */
export function countedCalls(timeline: Timeline, session: SessionId): Promise<CountedSession> {
  const known = counted.get(timeline) ?? new Map<SessionId, Promise<CountedSession>>();
  counted.set(timeline, known);
  return askOnce(known, session, () => countCalls(timeline, session));
}

async function countCalls(timeline: Timeline, session: SessionId): Promise<CountedSession> {
  const [steps, requests] = await Promise.all([timeline.steps(session), timeline.requests(session)]);
  const inherited = await inheritedSteps(timeline.present, session, steps);
  const own = inherited.steps + 1;
  const made = modelCallsOf(steps);
  const byCalls = made.flatMap(({ number, turn, at, answer, usage }): readonly OwnCounts[] => {
    const [step = 0] = answer;
    if (usage === undefined) return [];
    const request = requests.findLast((one) => one.step < step);
    const isSent = request?.kind === 'sent';
    return [{ isOwn: step >= own, number, step, turn, at, usage, request: request?.step ?? step, isSent }];
  });
  const byRequests = requests.flatMap(({ kind, turn, step, at, proof, call, usage }, i): readonly OwnCounts[] => {
    if (usage === undefined) return [];
    const first = call?.answer[0] ?? step + 1;
    const isOwn = proof === undefined ? first >= own : proof.session === session;
    return [
      {
        isOwn,
        number: i + 1,
        step: call === undefined ? step : first,
        turn,
        at,
        usage,
        request: step,
        isSent: kind === 'sent',
      },
    ];
  });
  // A gateway may have recorded more requests than there are answers among the steps.
  const summaries = steps.flatMap(({ seq: step, event }) =>
    event?.kind === 'compacted' && event.detail ? [{ step, tokens: countTokens(event.detail) }] : [],
  );
  const all = comparedCalls(byRequests.length >= byCalls.length ? byRequests : byCalls, summaries);
  return {
    steps,
    records: requests.flatMap(({ proof }) => proof ?? []),
    all,
    calls: all.filter(({ isOwn }) => isOwn),
    inherited: { ...inherited, calls: made.filter(({ answer: [first = 0] }) => first < own).length },
  };
}

/** Formats a pause: `12 minutes`, `6 hours`. */
function pauseText(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${minutes} minutes`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}

/** Describes the event between two calls that explains a lost cache. */
function lossClause(steps: readonly Step[], call: CountedCall, diff: PrefixDiff | undefined): string | undefined {
  const between = steps.filter(({ seq }) => seq > call.before && seq <= call.step);
  if (between.some(({ event }) => event?.kind === 'compacted')) return 'the harness compacted its history';
  if (between.some(({ event }) => event?.kind === 'diverged')) return 'the conversation was rewound';
  // The provider keeps a separate cache for each model.
  if (call.modelBefore !== undefined) return `the model changed from ${call.modelBefore} to ${call.usage.model}`;
  const clause = diff === undefined ? undefined : causeClause(diff);
  // A change that accounts for less than half of the loss is not its cause.
  if (diff !== undefined && clause !== undefined && diff.again * 2 >= call.again) return clause;
  if (between.some(({ event }) => event?.kind === 'forked'))
    return 'it is the first call of the session itself, and the calls before are those of its parent';
  const before = steps.findLast(({ seq }) => seq <= call.before);
  const pausedMs = before === undefined ? 0 : call.at - before.at;
  const { lifetimeMs, again: lost } = call;
  if (call.keptTo === undefined && pauseEndsCache(pausedMs, { lifetimeMs, lost, read: call.usage.cacheRead ?? 0 }))
    return `the agent paused for ${pauseText(pausedMs)}, and the provider's cache ended`;
  if (call.usage.cacheMiss !== undefined) return `the provider says ${call.usage.cacheMiss.reason}`;
  if (diff === undefined) return undefined;
  const changed = clause === undefined ? '' : `; the change of the request explains ${grouped(diff.again)} of them`;
  return `the provider's cache no longer had them${changed}`;
}

/**
 * Says how far a cache was kept, if nothing explains its loss. Some agents leave out the reasoning
 * of a turn when the next turn begins.
 */
function keptSentence({ keptTo, turn }: CountedCall): string {
  if (keptTo === undefined) return 'Nothing recorded shows why.';
  const reasoning = keptTo === turn - 1 ? ' Leaving out the reasoning of a finished turn has this effect.' : '';
  return (
    `The provider's cache was kept up to the beginning of turn ${keptTo}; ` +
    `what changed behind it is not recorded.${reasoning}`
  );
}

/** The sentence about a call's lost cache, and the object that caused the loss. */
export interface LossSentence {
  readonly sentence: string;
  readonly object?: ObjectId;
}

/**
 * Returns a sentence that no provider counted a request, if only a transcript shows that request.
 * Otherwise undefined. Without a count, it is unknown whether an unchanged beginning came from the
 * cache.
 */
export const uncountedSentence = ({ kind, usage }: Pick<SessionRequest, 'kind' | 'usage'>): string | undefined =>
  kind === 'transcript' && usage === undefined
    ? "The provider's count of this call is not recorded, so a loss of its cache is not known."
    : undefined;

/**
 * Returns a sentence that the provider counted fewer tokens than for the previous call, although
 * the transcript shows no removal. Undefined if it did not.
 */
export function fallSentence(call: CountedCall, steps: readonly Step[]): string | undefined {
  if (call.isSent || call.fewer === 0) return undefined;
  const isTold = steps.some(
    ({ seq, event }) => seq > call.before && seq <= call.step && SHORTENING.has(event?.kind ?? ''),
  );
  if (isTold) return undefined;
  const other = call.modelBefore === undefined ? '' : ', which another model answered';
  return (
    `The provider counted ${grouped(call.fewer)} tokens fewer than at the previous call${other}; ` +
    'which text left is not recorded.'
  );
}

/**
 * Returns a sentence on how much of a counted call was written again, and why. The views of money
 * and of changes share it. `diff` compares its request with the previous one, if both were
 * recorded.
 */
export function lossSentence(call: CountedCall, steps: readonly Step[], diff: PrefixDiff | undefined): LossSentence {
  const { turn, again, fresh, usage } = call;
  if (again === 0)
    return {
      sentence:
        `Nothing was written again in turn ${turn}: ${grouped(usage.cacheRead ?? 0)} tokens came from the ` +
        `provider's cache, and ${grouped(fresh)} were new.`,
    };
  const known = diff !== undefined && call.isSent ? diff : undefined;
  const clause = lossClause(steps, call, known);
  const object = known !== undefined && clause === causeClause(known) ? known.cause?.object : undefined;
  return {
    sentence:
      clause === undefined
        ? `${grouped(again)} tokens were written again in turn ${turn}. ${keptSentence(call)}`
        : `${grouped(again)} tokens were written again in turn ${turn} because ${clause}.`,
    ...defined({ object }),
  };
}
