import { dollarsOf } from '../review/money/dollar-prices.js';
import { startedBy } from '../review/rows/started-by.js';
import type { CountedAnswer, SessionFacts } from './session-facts.js';

/** Tokens of model calls and what they cost. */
export interface Spent {
  calls: number;
  fresh: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  /** US dollars of the calls with a known price. */
  dollars: number;
  /** Number of calls to models without a known price. */
  unpriced: number;
}

/** Returns a sum of zero. */
export const nothingSpent = (): Spent => ({
  calls: 0,
  fresh: 0,
  cacheRead: 0,
  cacheWrite: 0,
  output: 0,
  dollars: 0,
  unpriced: 0,
});

/** Adds one answer of a model. A cost that the agent recorded takes precedence over list prices. */
export function addAnswer(
  spent: Spent,
  [at, , fresh, read, write, output, recorded, hour]: CountedAnswer,
  model: string,
): void {
  spent.calls += 1;
  spent.fresh += fresh;
  spent.cacheRead += read;
  spent.cacheWrite += write;
  spent.output += output;
  const tokens = { fresh, cacheRead: read, cacheWrite: write, cacheWriteHour: hour, output };
  const cost = recorded ?? dollarsOf(model, { at, ...tokens });
  if (cost === undefined) spent.unpriced += 1;
  else spent.dollars += cost;
}

/** Returns the number of all tokens: prompts, cached tokens and answers. */
export const allTokens = ({ fresh, cacheRead, cacheWrite, output }: Spent): number =>
  fresh + cacheRead + cacheWrite + output;

type CountedFacts = Pick<SessionFacts, 'answers' | 'models' | 'subAgents'>;

/** Returns the tokens and the cost of one recording, with its sub-agents. */
export function spentBy({ answers, models }: CountedFacts): Spent {
  const spent = nothingSpent();
  for (const answer of answers) addAnswer(spent, answer, models[answer[1]] ?? '');
  return spent;
}

/** Returns the tokens and the cost of one session, without its sub-agents. */
export function ownSpent({ answers, subAgents, ...facts }: CountedFacts): Spent {
  const others = new Set(subAgents?.answers);
  return spentBy({ ...facts, answers: answers.filter((_answer, i) => !others.has(i)) });
}

type StartedFacts = CountedFacts & Pick<SessionFacts, 'id' | 'subagentOf'>;

/**
 * Returns the tokens and the cost of a session with its sub-agents, which may have separate
 * recordings among `all`. Undefined without sub-agents.
 */
export function spentWithSubAgents(
  session: StartedFacts,
  all: readonly StartedFacts[],
): { readonly sessions: number; readonly spent: Spent } | undefined {
  const started = startedBy(session.id, all, ({ subagentOf }) => subagentOf);
  const sessions = [session, ...started].reduce(
    (sum, { subAgents }) => sum + (subAgents?.sessions ?? 0),
    started.length,
  );
  if (sessions === 0) return undefined;
  const spent = nothingSpent();
  for (const one of [session, ...started].map(spentBy))
    for (const name of Object.keys(spent) as (keyof Spent)[]) spent[name] += one[name];
  return { sessions, spent };
}
