import { requireSession } from '../../history/rebuild/find-session.js';
import { promptTokens } from '../../history/rebuild/model-calls.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { wireShape } from '../../http/wire-shape.js';
import type { SessionId } from '../../objects/ids.js';
import { comparePrefixes, type PrefixDiff } from '../../review/ask/prefix-diff.js';
import { grouped } from '../../review/ask/prefix-sentence.js';
import { openRequests } from '../../review/ask/request-reader.js';
import { sessionCalls } from '../../review/ask/session-calls.js';
import { countHere } from '../../review/ask/token-count.js';
import { pinnedBasis } from '../../review/http/review-answers.js';
import { addCall, costOf, noSpending, shownCost, shownTokens } from '../../review/money/call-cost.js';
import { DOLLAR_PRICES_AS_OF, dollarPricesOf, HOUR_WRITE, writesAsFresh } from '../../review/money/dollar-prices.js';
import { shownWithSubAgents, withSubAgents } from '../../review/money/sub-agent-cost.js';
import { uncountedAnswers } from '../../review/money/uncounted-output.js';
import { type RecordedParents, subAgentsOf } from '../../review/rows/sub-agents.js';
import { defined } from '../../values/defined.js';
import { costAlone } from './cost-alone.js';
import {
  type CountedCall,
  type CountedSession,
  countedCalls,
  type LossSentence,
  lossSentence,
} from './counted-calls.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';

const MOST_COSTLY = 5;
type Cause = PageBody<'Money'>['causes'][number]['cause'];

/** The parts of a call's cost by cause, in US dollars. Undefined for a model without a price. */
function partsOf({ usage, at, fresh, again }: CountedCall): Readonly<Record<Cause, number>> | undefined {
  const total = costOf(usage, { at });
  const prices = dollarPricesOf(usage.model ?? '', at) ?? { input: 1, output: 5, read: 0.1, write: 1.25 };
  if (total === undefined) return undefined;
  const { cacheRead = 0, cacheWrite = 0, cacheWriteHour, input = 0, output = 0 } = usage;
  // The average price of text outside of the cache: cache writes have another price than other
  // input.
  const written = writesAsFresh(prices, { cacheWrite, cacheWriteHour });
  const rate = input + cacheWrite === 0 ? 1 : (input + written) / (input + cacheWrite);
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

/** Compares the sent requests of some calls with the previous ones, by the calls' steps. */
async function comparisons(
  timeline: Timeline,
  session: SessionId,
  calls: readonly CountedCall[],
): Promise<ReadonlyMap<number, PrefixDiff>> {
  const found = new Map<number, PrefixDiff>();
  const sent = calls.filter(({ isSent }) => isSent);
  if (sent.length === 0) return found;
  const reader = await openRequests(timeline, session);
  for (const { step, request } of sent) {
    const at = reader.requests.findIndex((one) => one.step === request && one.kind === 'sent');
    const [from, to] = [reader.requests[at - 1], reader.requests[at]];
    if (from === undefined || to === undefined) continue;
    // If a request cannot be rebuilt, the cause comes only from the steps.
    const pair = await Promise.all([reader.request(from, countHere), reader.request(to, countHere)]).catch(
      () => undefined,
    );
    if (pair === undefined) continue;
    found.set(step, await comparePrefixes(timeline, reader, { from: pair[0], to: pair[1], count: countHere }));
  }
  return found;
}

function inheritedSentence({ calls, session }: CountedSession['inherited']): string | undefined {
  if (calls === 0) return undefined;
  const from = session === undefined ? 'its parent' : `the session ${session}`;
  return calls === 1
    ? `It begins with 1 call of ${from}, which is not counted here.`
    : `It begins with ${grouped(calls)} calls of ${from}, which are not counted here.`;
}

/**
 * Returns the cost of a session by cause. A cost that the agent recorded is divided among the
 * causes in the proportions of list prices. The steps that a fork shares count for its parent.
 *
 * @throws {HistoryError} `unknown-session`
 */
export async function sessionMoney(
  asked: Timeline,
  name: string,
  { upto = Number.POSITIVE_INFINITY, recorded }: { readonly upto?: number; readonly recorded?: RecordedParents } = {},
): Promise<PageBody<'Money'>> {
  const session = await requireSession(asked.present, name);
  const timeline = await asked.of(session);
  const { steps, records, calls: made, inherited } = await countedCalls(timeline, session);
  const calls = made.filter(({ step }) => step <= upto);
  const spent = noSpending();
  for (const { usage, at } of calls) addCall(spent, usage, { at });
  const { present } = timeline;
  const all = await withSubAgents(present, spent, await subAgentsOf(present, session, recorded));
  const placeholders = uncountedAnswers(steps);
  const parts = calls.map((call) => ({ call, parts: partsOf(call) }));
  const moments = parts.flatMap(({ call, parts: own }) =>
    CAUSES.filter((cause) => cause !== 'rent').map((cause) => ({
      call,
      cause,
      amount: own?.[cause],
      tokens: TOKENS[cause](call),
    })),
  );
  const isPriced = spent.calls > spent.unpriced;
  const costly = [...moments]
    .sort((a, b) => (isPriced ? (b.amount ?? 0) - (a.amount ?? 0) : b.tokens - a.tokens))
    .filter(({ tokens }) => tokens > 0)
    .slice(0, MOST_COSTLY);
  const named = await sessionCalls(
    timeline.present,
    steps.filter(({ seq }) => costly.some(({ call }) => seq > call.before && seq <= call.step)),
    timeline.paths,
  );
  const lost = costly.flatMap(({ call, cause }) => (cause === 'lost-cache' ? [call] : []));
  const diffs = await comparisons(timeline, session, lost);
  const told = ({ call, cause, tokens }: (typeof moments)[number]): LossSentence => {
    if (cause === 'lost-cache') return lossSentence(call, steps, diffs.get(call.step));
    const { turn, before } = call;
    if (cause === 'answers') {
      const least = placeholders.has(call.step) ? 'at least ' : '';
      return { sentence: `The model wrote ${least}${grouped(tokens)} tokens in turn ${turn}.` };
    }
    const last = steps.findLast(({ seq, call: made }) => made !== undefined && seq > before && seq <= call.step)?.call;
    const after = last === undefined ? undefined : named.get(last.id)?.name;
    const where = `in turn ${turn}${after === undefined ? '' : ` after ${after}`}`;
    return { sentence: `${grouped(tokens)} new tokens were sent ${where}.` };
  };
  const isSteered = records.some(({ sent }) => sent === undefined);
  const alone = isSteered ? costAlone(calls, { steps, calls: await sessionCalls(timeline.present, steps) }) : undefined;
  const models = new Map<string, number>();
  for (const { usage } of calls) models.set(usage.model ?? '', (models.get(usage.model ?? '') ?? 0) + 1);
  const perMillion = (model: string) => {
    const prices = dollarPricesOf(model, calls[0]?.at ?? null);
    if (prices === undefined) return {};
    const { input, output, read, write } = prices;
    const isHour = calls.some(({ usage }) => usage.model === model && (usage.cacheWriteHour ?? 0) > 0);
    const cacheWriteHour = isHour ? input * HOUR_WRITE : undefined;
    return { input, output, cacheRead: input * read, cacheWrite: input * write, ...defined({ cacheWriteHour }) };
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
    ...defined({ withSubAgents: shownWithSubAgents(all) }),
    calls: calls.length,
    uncounted: calls.filter(({ step }) => placeholders.has(step)).length,
    ...defined({ inherited: inheritedSentence(inherited) }),
    causes: CAUSES.map((cause) => ({
      cause,
      tokens: calls.reduce((sum, call) => sum + TOKENS[cause](call), 0),
      ...defined({ amount: isPriced ? parts.reduce((sum, one) => sum + (one.parts?.[cause] ?? 0), 0) : undefined }),
    })),
    costliest: costly.map((moment) => ({
      step: moment.call.request,
      turn: moment.call.turn,
      call: moment.call.number,
      at: new Date(moment.call.at),
      ...defined({ amount: moment.amount }),
      tokens: moment.tokens,
      cause: moment.cause,
      ...told(moment),
    })),
    byCall: calls.map((call) => ({
      step: call.request,
      ...defined({ amount: costOf(call.usage, { at: call.at }) }),
      written: promptTokens(call.usage) - (call.usage.cacheRead ?? 0),
      read: call.usage.cacheRead ?? 0,
      again: call.again,
    })),
  });
}
