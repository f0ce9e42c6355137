import { PRICE_TABLES } from '../prices/price-table.js';
import { type PooledScore, pooledScore, type ScoredPair } from './pooled.js';

/**
 * Shares of the calls and of the needed lines that a policy must keep on the other sessions to be
 * chosen.
 */
export const LEAST_KEPT = { calls: 0.95, lines: 0.98 } as const;

/** A choice among several policies, made for each session on all the others. */
export interface CrossValidation {
  readonly least: typeof LEAST_KEPT;
  /** The policy under which each session was scored. */
  readonly chosen: readonly { readonly session: string; readonly policy: string }[];
  readonly pooled: PooledScore;
}

/** A policy that can be chosen. */
export interface Candidate {
  readonly name: string;
  readonly pairs: readonly ScoredPair[];
}

const [COMPARED] = PRICE_TABLES;

/**
 * Returns the cheapest candidate that kept enough. If none did, returns the one that kept the most
 * calls.
 */
function choose(candidates: readonly Candidate[]): Candidate | undefined {
  const scored = candidates.flatMap((candidate) => {
    const pooled = pooledScore(candidate.pairs, { intervals: false });
    return pooled === undefined ? [] : [{ candidate, pooled }];
  });
  const costOf = ({ cost }: PooledScore): number => cost[COMPARED.name]?.value ?? Number.POSITIVE_INFINITY;
  const enough = scored.filter(
    ({ pooled }) => pooled.callsKept.value >= LEAST_KEPT.calls && pooled.linesKept.value >= LEAST_KEPT.lines,
  );
  const [first] =
    enough.length > 0
      ? enough.sort((a, b) => costOf(a.pooled) - costOf(b.pooled))
      : scored.sort((a, b) => b.pooled.callsKept.value - a.pooled.callsKept.value);
  return first?.candidate;
}

/**
 * Cross-validates a choice (leave one out): each session is scored under the policy that did best
 * on all others. Only sessions that every candidate scored count. Undefined with fewer than two
 * candidates or sessions.
 */
export function crossValidate(candidates: readonly Candidate[]): CrossValidation | undefined {
  const [first, ...rest] = candidates;
  if (first === undefined || rest.length === 0) return undefined;
  const names = first.pairs
    .map(({ session }) => session)
    .filter((name) => rest.every(({ pairs }) => pairs.some(({ session }) => session === name)));
  if (names.length < 2) return undefined;
  const common = candidates.map(({ name, pairs }) => ({
    name,
    pairs: pairs.filter(({ session }) => names.includes(session)),
  }));
  const found = names.flatMap((left) => {
    const policy = choose(
      common.map(({ name, pairs }) => ({ name, pairs: pairs.filter(({ session }) => session !== left) })),
    )?.name;
    const pair = common.find(({ name }) => name === policy)?.pairs.find(({ session }) => session === left);
    return policy === undefined || pair === undefined ? [] : [{ session: left, policy, pair }];
  });
  const pooled = pooledScore(found.map(({ pair }) => pair));
  if (pooled === undefined) return undefined;
  return { least: LEAST_KEPT, chosen: found.map(({ session, policy }) => ({ session, policy })), pooled };
}
