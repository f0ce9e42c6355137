import { createHash } from 'node:crypto';
import { PRICES_AS_OF } from '../../assembly/epoch/prices.js';
import { defined } from '../../values/defined.js';
import { asSent } from '../policies/as-sent.js';
import type { ContextPolicy, PolicyFacts } from '../policies/policy.js';
import { raw } from '../policies/raw.js';
import { PRICE_TABLES } from '../prices/price-table.js';
import { chooseOn, leaveProjectsOut, type ScoredPolicy, type Split, splitByProject } from '../scorecard/held-out.js';
import { pooledScore, type ScoredSession } from '../scorecard/pooled.js';
import type { LabConfig } from './lab-config.js';
import type { LabFamily, LabReport, LabSession, Side } from './lab-report.js';

/** The data of a report, except its sessions. */
export interface ReportFacts {
  readonly config: LabConfig;
  readonly leftOut: number;
  readonly missing: number;
  readonly hashes: readonly string[];
  /** The split that the user named. If undefined, sessions are split by project. */
  readonly named?: Split | undefined;
}

/** Returns the sessions that a policy and both baselines scored. */
export function scoredSessions(sessions: readonly LabSession[], policy: string): readonly ScoredSession[] {
  return sessions.flatMap(({ name, policies }) => {
    const [own, base, sent] = [policy, raw.name, asSent.name].map((one) => policies[one]?.score);
    return own === undefined || base === undefined || sent === undefined
      ? []
      : [{ session: name, own, raw: base, sent }];
  });
}

function familiesOf(policies: readonly (ScoredPolicy & PolicyFacts)[], { train }: Split): readonly LabFamily[] {
  const names = [...new Set(policies.map(({ family }) => family))];
  return names.map((family) => {
    const settings = policies.filter((policy) => policy.family === family);
    const [published] = settings;
    if (published === undefined) throw new Error(`no policy of the family ${family}`);
    const best = settings.length > 1 ? chooseOn(settings, train)?.name : undefined;
    return { family, kind: published.kind, published: published.name, ...defined({ best }) };
  });
}

/** Makes the report from the scored sessions. Chooses settings on the training side only. */
export function makeReport(
  sessions: readonly LabSession[],
  made: readonly ContextPolicy[],
  { config, leftOut, missing, hashes, named }: ReportFacts,
): LabReport {
  const grouped = sessions.map(({ name, group, calls }) => ({ session: name, group, calls }));
  const split = named ?? splitByProject(grouped);
  const policies = made.map((policy) => ({ ...factsOf(policy), sessions: scoredSessions(sessions, policy.name) }));
  const sides = (scored: readonly ScoredSession[]): Readonly<Partial<Record<Side, ReturnType<typeof pooledScore>>>> =>
    defined({
      all: pooledScore(scored),
      train: pooledScore(scored.filter(({ session }) => split.train.has(session))),
      test: pooledScore(scored.filter(({ session }) => split.test.has(session))),
    });
  const ours = policies.filter(({ family }) => family === OWN_FAMILY);
  const left = leaveProjectsOut(ours, grouped);
  const leftPooled = left === undefined ? undefined : pooledScore(left.sessions);
  return {
    report: 'laboratory',
    version: 2,
    corpus: createHash('sha256')
      .update([...hashes].sort().join('\n'))
      .digest('hex'),
    recordings: hashes.length,
    missing,
    leftOut,
    config,
    prices: {
      asOf: PRICES_AS_OF,
      tables: PRICE_TABLES.map(({ models, ...table }) => ({ ...table, models: models.source })),
    },
    split: {
      by: named === undefined ? 'project' : 'named',
      train: [...split.train].sort(),
      test: [...split.test].sort(),
    },
    policies: policies.map(({ sessions: scored, ...facts }) => ({ ...facts, pooled: defined(sides(scored)) })),
    families: familiesOf(policies, split),
    sessions,
    ...(left === undefined || leftPooled === undefined
      ? {}
      : { leftOutProjects: { chosen: left.chosen, pooled: leftPooled } }),
  };
}

/** The family of policies that the report's sentences describe. */
export const OWN_FAMILY = 'Palimpsest epoch';

const factsOf = ({ name, family, kind, source, fidelity, about, reach, guide }: ContextPolicy): PolicyFacts => ({
  name,
  family,
  kind,
  source,
  fidelity,
  about,
  reach,
  guide,
});
