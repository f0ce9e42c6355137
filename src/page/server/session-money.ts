import { requireSession } from '../../history/rebuild/find-session.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { wireShape } from '../../http/wire-shape.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import { comparePrefixes } from '../../review/ask/prefix-diff.js';
import { prefixSentence } from '../../review/ask/prefix-sentence.js';
import { openRequests, usagesOf } from '../../review/ask/request-reader.js';
import { sessionCalls } from '../../review/ask/session-calls.js';
import { countHere } from '../../review/ask/token-count.js';
import { pinnedBasis } from '../../review/http/review-answers.js';
import { addCall, costOf, noSpending, shownCost, shownTokens } from '../../review/money/call-cost.js';
import { DOLLAR_PRICES_AS_OF, dollarPricesOf } from '../../review/money/dollar-prices.js';
import { defined } from '../../values/defined.js';
import { costAlone } from './cost-alone.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';

/** A model call that its provider counted. */
interface CountedCall {
  readonly step: number;
  readonly turn: number;
  readonly at: number;
  /** Position among the counted calls, from 1. */
  readonly number: number;
  readonly usage: ModelUsage;
  /** Prompt tokens outside of the cache that the request before had not. */
  readonly fresh: number;
  /** Prompt tokens that the request before had, too, and that were not read from the cache. */
  readonly again: number;
}

const MOST_COSTLY = 5;
/** Smaller differences come from the provider's rounding and from texts that moved to the end. */
const LEAST_AGAIN = 1_024;

const promptOf = ({ input = 0, cacheRead = 0, cacheWrite = 0 }: ModelUsage): number => input + cacheRead + cacheWrite;

/** Returns the model calls that have a provider's counts, in order. */
function countedCalls(usages: readonly Pick<CountedCall, 'step' | 'turn' | 'at' | 'usage'>[]): readonly CountedCall[] {
  let before: ModelUsage | undefined;
  return usages.map((one, i) => {
    const { cacheRead = 0 } = one.usage;
    const prompt = promptOf(one.usage);
    const lost = before === undefined ? 0 : Math.min(promptOf(before), prompt) - cacheRead;
    const again = lost < LEAST_AGAIN ? 0 : lost;
    before = one.usage;
    return { ...one, number: i + 1, again, fresh: Math.max(0, prompt - cacheRead - again) };
  });
}

/** Says what happened between two calls that explains a lost cache. */
function lossCause(steps: readonly Step[], from: number, call: CountedCall): string {
  const between = steps.filter(({ seq }) => seq > from && seq <= call.step);
  if (between.some(({ event }) => event?.kind === 'compacted')) return 'the harness compacted its history';
  if (between.some(({ event }) => event?.kind === 'diverged')) return 'the conversation was rewound';
  const before = steps.findLast(({ seq }) => seq <= from);
  const minutes = before === undefined ? 0 : Math.round((call.at - before.at) / 60_000);
  if (minutes >= 5) return `the agent paused for ${minutes} minutes, and the provider's cache ended`;
  if (call.usage.cacheMiss !== undefined) return `the provider says ${call.usage.cacheMiss.reason}`;
  return 'the request no longer began as the one before it: see what changed';
}

const grouped = (count: number): string => String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');

type Cause = PageBody<'Money'>['causes'][number]['cause'];

/** The parts of a call's cost by cause, in US dollars. Undefined for a model without a price. */
function partsOf({ usage, at, fresh, again }: CountedCall): Readonly<Record<Cause, number>> | undefined {
  const total = costOf(usage, { at });
  const prices = dollarPricesOf(usage.model ?? '', at) ?? { input: 1, output: 5, read: 0.1, write: 1.25 };
  if (total === undefined) return undefined;
  const { cacheRead = 0, cacheWrite = 0, input = 0, output = 0 } = usage;
  // Text outside of the cache costs the price of writes as far as the provider wrote it.
  const rate = input + cacheWrite === 0 ? 1 : (input + cacheWrite * prices.write) / (input + cacheWrite);
  const parts = {
    'first-writes': fresh * rate * prices.input,
    'lost-cache': again * rate * prices.input,
    rent: cacheRead * prices.read * prices.input,
    answers: output * prices.output,
  };
  const sum = Object.values(parts).reduce((all, one) => all + one, 0);
  const scale = sum === 0 ? 0 : total / sum;
  return Object.fromEntries(Object.entries(parts).map(([cause, one]) => [cause, one * scale])) as Record<Cause, number>;
}

const TOKENS: Readonly<Record<Cause, (call: CountedCall) => number>> = {
  'first-writes': ({ fresh }) => fresh,
  'lost-cache': ({ again }) => again,
  rent: ({ usage }) => usage.cacheRead ?? 0,
  answers: ({ usage }) => usage.output ?? 0,
};
const CAUSES = Object.keys(TOKENS) as readonly Cause[];

/** Returns what changed in the requests of the most expensive lost caches, by step. */
async function knownCauses(
  timeline: Timeline,
  session: SessionId,
  costly: readonly { readonly call: CountedCall; readonly cause: Cause; readonly tokens: number }[],
): Promise<ReadonlyMap<number, { readonly sentence: string; readonly object?: ObjectId }>> {
  const found = new Map<number, { readonly sentence: string; readonly object?: ObjectId }>();
  const lost = costly.filter(({ cause }) => cause === 'lost-cache');
  if (lost.length === 0) return found;
  const reader = await openRequests(timeline, session);
  for (const { call, tokens } of lost) {
    const at = reader.records.findIndex(({ step, delivered }) => step === call.step && delivered !== 'replay');
    const [from, to] = [reader.records[at - 1], reader.records[at]];
    if (from === undefined || to === undefined) continue;
    // A request that cannot be rebuilt keeps the cause that its steps suggest.
    const pair = await Promise.all([reader.request(from, countHere), reader.request(to, countHere)]).catch(
      () => undefined,
    );
    if (pair === undefined) continue;
    const diff = await comparePrefixes(timeline, reader, { from: pair[0], to: pair[1], count: countHere });
    if (diff.isPrefix || diff.cause === undefined) continue;
    const { object } = diff.cause;
    const why = prefixSentence(diff).replace(/^[\d,]+ /, `${grouped(tokens)} `);
    found.set(call.step, { sentence: why, ...defined({ object }) });
  }
  return found;
}

/**
 * Returns the cost of a session by cause. A cost that the agent recorded is divided among the
 * causes in the proportions of list prices.
 *
 * @throws {HistoryError} `unknown-session`
 */
export async function sessionMoney(asked: Timeline, name: string): Promise<PageBody<'Money'>> {
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const [steps, records] = await Promise.all([
    timeline.steps(session),
    timeline.records(session).catch(() => timeline.present.assemblies(session, { onDamaged: () => undefined })),
  ]);
  const byRecord = [...usagesOf({ records, steps })];
  const bySteps = steps.flatMap(({ seq, turn, at, usage }) =>
    usage === undefined ? [] : [{ step: seq, turn, at, usage }],
  );
  const ofRecords = byRecord.map(([{ step, turn, at }, usage]) => ({ step, turn, at, usage }));
  // A gateway has more requests than the steps have answers, and a recording fewer records.
  const calls = countedCalls(ofRecords.length >= bySteps.length ? ofRecords : bySteps);
  const spent = noSpending();
  for (const { usage, at } of calls) addCall(spent, usage, { at });
  const parts = calls.map((call) => ({ call, parts: partsOf(call) }));
  const moments = parts.flatMap(({ call, parts: own }, i) =>
    CAUSES.filter((cause) => cause !== 'rent').map((cause) => ({
      call,
      cause,
      amount: own?.[cause],
      tokens: TOKENS[cause](call),
      before: calls[i - 1]?.step ?? 0,
    })),
  );
  const isPriced = spent.calls > spent.unpriced;
  const costly = [...moments]
    .sort((a, b) => (isPriced ? (b.amount ?? 0) - (a.amount ?? 0) : b.tokens - a.tokens))
    .filter(({ tokens }) => tokens > 0)
    .slice(0, MOST_COSTLY);
  const named = await sessionCalls(
    timeline.present,
    steps.filter(({ seq }) => costly.some(({ call, before }) => seq > before && seq <= call.step)),
  );
  const sentence = ({ call, cause, tokens, before }: (typeof moments)[number]): string => {
    const where = `in turn ${call.turn}`;
    if (cause === 'lost-cache')
      return `${grouped(tokens)} tokens were written again ${where} because ${lossCause(steps, before, call)}.`;
    if (cause === 'answers') return `The model wrote ${grouped(tokens)} tokens ${where}.`;
    const last = steps.findLast(({ seq, call: made }) => made !== undefined && seq > before && seq <= call.step)?.call;
    const after = last === undefined ? undefined : named.get(last.id)?.name;
    return `${grouped(tokens)} new tokens were sent ${where}${after === undefined ? '' : ` after ${after}`}.`;
  };
  const isSteered = records.some(({ delivered, sent }) => delivered !== 'replay' && sent === undefined);
  const alone = isSteered ? costAlone(calls, { steps, calls: await sessionCalls(timeline.present, steps) }) : undefined;
  const known = await knownCauses(timeline, session, costly);
  const models = new Map<string, number>();
  for (const { usage } of calls) models.set(usage.model ?? '', (models.get(usage.model ?? '') ?? 0) + 1);
  const perMillion = (model: string) => {
    const prices = dollarPricesOf(model, calls[0]?.at ?? null);
    if (prices === undefined) return {};
    const { input, output, read, write } = prices;
    return { input, output, cacheRead: input * read, cacheWrite: input * write };
  };
  return wireShape(PAGE_ANSWERS.Money, {
    session,
    basis: pinnedBasis(timeline.present.basis),
    pricesAsOf: DOLLAR_PRICES_AS_OF,
    prices: [...models].map(([model, count]) => ({ model, calls: count, ...perMillion(model) })),
    spent: shownCost(spent),
    alone: alone === undefined ? undefined : { ...alone, currency: 'USD', source: 'list' },
    aloneWhy:
      alone?.why ??
      (isSteered
        ? 'Without token counts and prices of its calls, the cost without Palimpsest cannot be estimated.'
        : 'This session ran without Palimpsest, so its cost is that of the agent alone.'),
    tokens: shownTokens(spent),
    calls: calls.length,
    causes: CAUSES.map((cause) => ({
      cause,
      tokens: calls.reduce((sum, call) => sum + TOKENS[cause](call), 0),
      ...defined({ amount: isPriced ? parts.reduce((sum, one) => sum + (one.parts?.[cause] ?? 0), 0) : undefined }),
    })),
    costliest: costly.map((moment) => ({
      step: moment.call.step,
      turn: moment.call.turn,
      call: moment.call.number,
      at: new Date(moment.call.at),
      ...defined({ amount: moment.amount }),
      tokens: moment.tokens,
      cause: moment.cause,
      ...(known.get(moment.call.step) ?? { sentence: sentence(moment) }),
    })),
    byCall: calls.map((call) => ({
      step: call.step,
      ...defined({ amount: costOf(call.usage, { at: call.at }) }),
      written: promptOf(call.usage) - (call.usage.cacheRead ?? 0),
      read: call.usage.cacheRead ?? 0,
      again: call.again,
    })),
  });
}
