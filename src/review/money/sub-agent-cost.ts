import type { SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { addSpending, noSpending, type Spending, shownCost, shownTokens } from './call-cost.js';
import { spendingOf } from './session-figures.js';

/** The sum of a session and its sub-agents. */
export interface WithSubAgents {
  readonly sessions: number;
  /** Undefined if a part has not been counted yet. */
  readonly spent?: Spending;
}

/** Adds up a session and its sub-agents. Undefined without sub-agents. */
export function sumWithSubAgents(
  own: Spending | undefined,
  subAgents: readonly (Spending | undefined)[],
): WithSubAgents | undefined {
  const { length: sessions } = subAgents;
  if (sessions === 0) return undefined;
  const spent = noSpending();
  for (const one of [own, ...subAgents]) {
    if (one === undefined) return { sessions };
    addSpending(spent, one);
  }
  return { sessions, spent };
}

/** Adds up a session and its sub-agents, whose steps it reads. Undefined without sub-agents. */
export async function withSubAgents(
  snapshot: StoreSnapshot,
  own: Spending,
  subAgents: readonly { readonly id: SessionId }[],
): Promise<WithSubAgents | undefined> {
  return sumWithSubAgents(own, await Promise.all(subAgents.map(({ id }) => spendingOf(snapshot, id))));
}

/** Returns the sum for an HTTP answer. */
export const shownWithSubAgents = (sum: WithSubAgents | undefined) =>
  sum === undefined
    ? undefined
    : {
        sessions: sum.sessions,
        tokens: sum.spent === undefined ? undefined : shownTokens(sum.spent),
        cost: sum.spent === undefined ? undefined : shownCost(sum.spent),
      };
