import type { PolicyFacts } from '../policies/policy.js';
import { type Candidate, pooledScore, type ScoredSession } from './pooled.js';

/** Minimum shares of the calls and of the needed lines that a chosen setting keeps. */
const LEAST_KEPT = { calls: 0.95, lines: 0.98 } as const;

/** A policy with its scored sessions. */
export interface ScoredPolicy extends Candidate, Pick<PolicyFacts, 'family'> {}

/**
 * The sessions for choosing a setting, and the sessions on which the chosen setting is reported.
 */
export interface Split {
  readonly train: ReadonlySet<string>;
  readonly test: ReadonlySet<string>;
}

/** A session with its project. All sessions of one project are on the same side of a split. */
export interface GroupedSession {
  readonly session: string;
  readonly group: string;
  readonly calls: number;
}

/** Returns the sessions of each project. Projects with more calls come first. */
function groupsOf(sessions: readonly GroupedSession[]): readonly (readonly GroupedSession[])[] {
  const groups = new Map<string, GroupedSession[]>();
  for (const one of sessions) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  const calls = (group: readonly GroupedSession[]): number => group.reduce((sum, one) => sum + one.calls, 0);
  return [...groups]
    .sort(([a, one], [b, other]) => calls(other) - calls(one) || (a < b ? -1 : 1))
    .map(([, group]) => group);
}

/**
 * Divides sessions into two sides with about the same number of calls. A project is never divided.
 * The largest project goes to the test side. The same sessions always give the same sides.
 */
export function splitByProject(sessions: readonly GroupedSession[]): Split {
  const sides = { train: new Set<string>(), test: new Set<string>() };
  const calls = { train: 0, test: 0 };
  for (const group of groupsOf(sessions)) {
    const side = calls.test <= calls.train ? 'test' : 'train';
    for (const one of group) {
      sides[side].add(one.session);
      calls[side] += one.calls;
    }
  }
  return sides;
}

const only = (sessions: readonly ScoredSession[], names: ReadonlySet<string>): readonly ScoredSession[] =>
  sessions.filter(({ session }) => names.has(session));

/**
 * Returns the best setting for the given sessions: the cheapest that keeps 95 % of the calls and 98
 * % of the lines. If none does, returns the one that keeps most calls. Policies without a score for
 * these sessions are skipped.
 */
export function chooseOn<P extends ScoredPolicy>(policies: readonly P[], names: ReadonlySet<string>): P | undefined {
  const scored = policies.flatMap((policy) => {
    const pooled = pooledScore(only(policy.sessions, names), { intervals: false });
    return pooled === undefined ? [] : [{ policy, pooled }];
  });
  const enough = scored.filter(
    ({ pooled }) => pooled.callsKept.value >= LEAST_KEPT.calls && pooled.linesKept.value >= LEAST_KEPT.lines,
  );
  const [first] =
    enough.length > 0
      ? enough.sort((a, b) => a.pooled.vsSent.value - b.pooled.vsSent.value)
      : scored.sort(
          (a, b) =>
            b.pooled.callsKept.value - a.pooled.callsKept.value || a.pooled.vsSent.value - b.pooled.vsSent.value,
        );
  return first?.policy;
}

/** The settings chosen for each project on all other projects. */
export interface LeftOut {
  readonly chosen: readonly { readonly sessions: readonly string[]; readonly policy: string }[];
  readonly sessions: readonly ScoredSession[];
}

/**
 * Scores each project with the setting of a family that is best on all other projects. Undefined
 * for fewer than two projects or settings.
 */
export function leaveProjectsOut(
  policies: readonly ScoredPolicy[],
  grouped: readonly GroupedSession[],
): LeftOut | undefined {
  const groups = groupsOf(grouped);
  if (groups.length < 2 || policies.length < 2) return undefined;
  const all = new Set(grouped.map(({ session }) => session));
  const found = groups.map((group) => {
    const names = new Set(group.map(({ session }) => session));
    const policy = chooseOn(policies, new Set([...all].filter((name) => !names.has(name))));
    return { names, policy };
  });
  return {
    chosen: found.map(({ names, policy }) => ({ sessions: [...names], policy: policy?.name ?? 'none' })),
    sessions: found.flatMap(({ names, policy }) => only(policy?.sessions ?? [], names)),
  };
}
