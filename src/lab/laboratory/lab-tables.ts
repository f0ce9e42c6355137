import type { Cell } from '../report/markdown.js';
import type { Interval, PooledScore } from '../scorecard/pooled.js';
import type { PolicyScore } from '../scorecard/score.js';
import type { LabPolicy, LabReport } from './lab-report.js';

/** A table of a report for Markdown and HTML. */
export interface LabTable {
  readonly heading: string;
  /** The paragraphs above it. */
  readonly intro: readonly string[];
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** The number of leading text columns. */
  readonly texts: number;
}

const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;
const times = (ratio: number): string => ratio.toFixed(2);
const range = ({ low, high }: Interval, show: (value: number) => string): string => `[${show(low)}–${show(high)}]`;

const withScore = (policies: readonly LabPolicy[]): readonly (LabPolicy & { readonly pooled: PooledScore })[] =>
  policies.flatMap((policy) => (policy.pooled === undefined ? [] : [{ ...policy, pooled: policy.pooled }]));

/** Cost, hits, recall and reasoning, which always appear together. */
const FOUR = ['cost', 'lines', 'calls', 'hits', 'reasoning'];
const four = (cost: Interval, { linesKept, callsKept, hits, reasoningKept }: PooledScore): readonly Cell[] => [
  `${times(cost.value)} ${range(cost, times)}`,
  percent(linesKept.value),
  `${percent(callsKept.value)} ${range(callsKept, (value) => (100 * value).toFixed(0))}`,
  percent(hits),
  percent(reasoningKept),
];

const NO_INTERVAL: Interval = { value: Number.NaN, low: Number.NaN, high: Number.NaN };

function pooledTable(report: LabReport): LabTable {
  const { policies, prices } = report;
  const [compared = { name: '' }] = prices.tables;
  const rows = withScore(policies).map(({ name, pooled }): readonly Cell[] => [
    name,
    pooled.sessions,
    ...four(pooled.cost[compared.name] ?? NO_INTERVAL, pooled),
    times(pooled.worstSession),
    times(pooled.meanOfSessions),
    times(pooled.withoutHeaviest),
    times(pooled.costWithFixed),
    times(pooled.tokens),
    Math.round(pooled.meanTokens),
    Math.round(pooled.peakTokens),
    percent(pooled.same),
  ]);
  return {
    heading: 'All sessions',
    intro: frontier(report),
    head: [
      'policy',
      'sessions',
      ...FOUR,
      'worst',
      'mean',
      'without the heaviest',
      'cost with fixed part',
      'tokens',
      'a call',
      'peak',
      'same prefix',
    ],
    rows,
    texts: 1,
  };
}

function missedTable({ policies, prices }: LabReport): LabTable {
  const [compared = { name: '' }] = prices.tables;
  const rows = withScore(policies).map(({ name, pooled }): readonly Cell[] => [
    name,
    ...four(pooled.cost[compared.name] ?? NO_INTERVAL, pooled),
    percent(pooled.activate, 2),
    percent(pooled.readAgain, 2),
    percent(pooled.lost, 2),
    pooled.repeats,
    times(pooled.costWithRepeats),
    Math.round(pooled.stale),
    pooled.rewrites,
    pooled.pressed,
    pooled.overWindow,
    pooled.storedPerCall === undefined ? '' : Math.round(pooled.storedPerCall),
    percent(pooled.exact),
  ]);
  const head = [
    'one activate away',
    'to be read again',
    'lost',
    'repeats',
    'cost with repeats',
    'stale',
    'rewrites',
    'under pressure',
    'over window',
    'stored',
    'exact',
  ];
  return { heading: 'What was missing', intro: [], head: ['policy', ...FOUR, ...head], rows, texts: 1 };
}

function priceTables(report: LabReport): LabTable {
  const { prices, policies } = report;
  const tables = prices.tables.map(
    ({ name, read, write, lifetimeMs }) => `${name}: read ${read}, write ${write}, lives ${lifetimeMs / 60_000} min`,
  );
  const rows = withScore(policies).map(({ name, pooled }): readonly Cell[] => [
    name,
    ...prices.tables.map((one) => {
      const cost = pooled.cost[one.name] ?? NO_INTERVAL;
      return `${times(cost.value)} ${range(cost, times)}`;
    }),
    times(ownTableCost(report, name)),
    percent(pooled.callsKept.value),
    percent(pooled.linesKept.value),
    percent(pooled.hits),
    percent(pooled.reasoningKept),
  ]);
  return {
    heading: 'Under each table of prices',
    intro: [
      `Prices of ${prices.asOf}, as multiples of a fresh token: ${tables.join('; ')}. \`own\` uses the table of ` +
        "each session's recorded model.",
    ],
    head: ['policy', ...prices.tables.map(({ name }) => name), 'own', 'calls', 'lines', 'hits', 'reasoning'],
    rows,
    texts: 1,
  };
}

/** Returns the pooled cost with every session under its model's own table. */
function ownTableCost({ sessions }: LabReport, policy: string): number {
  const pairs = sessions.flatMap(({ policies, priceTable }) => {
    const [own, raw] = [policies[policy]?.score?.cost[priceTable], policies.raw?.score?.cost[priceTable]];
    return own === undefined || raw === undefined ? [] : [{ own, raw }];
  });
  return pairs.reduce((sum, { own }) => sum + own, 0) / pairs.reduce((sum, { raw }) => sum + raw, 0);
}

/**
 * Formats a session under a policy: cost, calls kept, hits, reasoning, and the call up to which its
 * figures are exact.
 */
function sessionCell(score: PolicyScore, raw: PolicyScore, compared: string): string {
  const { calls, callsKept } = score.needed;
  const cost = (score.cost[compared] ?? 0) / (raw.cost[compared] ?? 1);
  const kept = calls === 0 ? 'none needed' : percent(callsKept / calls, 0);
  const mark = score.exact === score.calls ? 'exact' : `bounded@${score.exact}`;
  return [
    times(cost),
    kept,
    percent(score.hits / score.tokens.total, 0),
    percent(score.reasoning.kept / score.calls, 0),
    mark,
  ].join(' · ');
}

function sessionTable({ policies, sessions, prices }: LabReport): LabTable {
  const [compared = { name: '' }] = prices.tables;
  const names = policies.map(({ name }) => name).filter((name) => name !== 'raw');
  const rows = sessions.map((session): readonly Cell[] => {
    const raw = session.policies.raw?.score;
    return [
      session.name,
      session.calls,
      session.turns,
      Math.round(raw?.tokens.peak ?? 0),
      ...names.map((name) => {
        const result = session.policies[name];
        if (result?.score === undefined || raw === undefined)
          return `out of support: ${result?.unsupported ?? 'not compared'}`;
        return sessionCell(result.score, raw, compared.name);
      }),
    ];
  });
  return {
    heading: 'Each session',
    intro: ['Cost · calls kept · hits · reasoning · exact, or bounded from that call on.'],
    head: ['session', 'calls', 'turns', 'raw peak', ...names],
    rows,
    texts: 1,
  };
}

function calibrationTable({ sessions }: LabReport): LabTable {
  const rows = sessions.map(({ name, priceTable, calibration, marks, losses, complete }): readonly Cell[] => [
    name,
    priceTable,
    ...(calibration === undefined
      ? ['not counted', '', '', '', '']
      : [
          calibration.calls,
          Math.round(calibration.fixed),
          calibration.charsPerToken.toFixed(2),
          percent(calibration.difference),
          calibration.cached === undefined ? '' : percent(calibration.cached),
        ]),
    [
      ...marks,
      ...(complete ? [] : ['the recording is cut off']),
      ...(losses === 0 ? [] : [`${losses} losses of the import`]),
    ].join('; '),
  ]);
  return {
    heading: 'How far the estimates can be trusted',
    intro: [
      "Our estimates for the requests of the recording's own model, against its provider's counts. Fixed part: " +
        'tokens beyond the texts (system prompt, tools, sealed thinking). Characters a token: of the added texts. ' +
        'Difference: of the estimate with the fixed part.',
    ],
    head: [
      'session',
      'prices',
      'counted calls',
      'fixed part',
      'characters a token',
      'difference',
      'from cache',
      'marks',
    ],
    rows,
    texts: 2,
  };
}

/** Compares our policies with the others: the costs at which ours keep less. */
function frontier({ policies, prices }: LabReport): readonly string[] {
  const [compared = { name: '' }] = prices.tables;
  const scored = withScore(policies);
  const own = scored.filter(({ family }) => family === 'own');
  const peers = scored.filter(({ family }) => family === 'peer');
  if (own.length === 0 || peers.length === 0) return [];
  const better = peers.filter(({ pooled: peer }) => !own.some(({ pooled }) => isNoWorse(pooled, peer, compared.name)));
  if (better.length === 0)
    return ['At no cost level does a policy of others keep more calls than one of ours that costs no more.'];
  return [
    'These policies of others keep more calls than any of ours at the same cost or less: ' +
      `${better.map(({ name }) => name).join('; ')}.`,
    '',
  ];
}

const isNoWorse = (own: PooledScore, peer: PooledScore, compared: string): boolean =>
  own.sessions === peer.sessions
    ? (own.cost[compared]?.value ?? 0) <= (peer.cost[compared]?.value ?? 0) &&
      own.callsKept.value >= peer.callsKept.value
    : true;

/**
 * Shows our policies on unseen sessions: each session under the policy that did best on the others.
 */
function chosenTable({ crossValidation, sessions, prices }: LabReport): readonly LabTable[] {
  if (crossValidation === undefined) return [];
  const [compared = { name: '' }] = prices.tables;
  const { chosen, pooled, least } = crossValidation;
  const rows = chosen.map(({ session, policy }): readonly Cell[] => {
    const policies = sessions.find(({ name }) => name === session)?.policies;
    const [own, raw] = [policies?.[policy]?.score, policies?.raw?.score];
    return [session, policy, own === undefined || raw === undefined ? '' : sessionCell(own, raw, compared.name)];
  });
  const [cost, lines, calls, hits, reasoning] = four(pooled.cost[compared.name] ?? NO_INTERVAL, pooled);
  return [
    {
      heading: 'Chosen without the session',
      intro: [
        'Each session under one of our policies: the cheapest on all other sessions that keeps ' +
          `${percent(least.calls, 0)} of the calls and ${percent(least.lines, 0)} of the lines there. Together: ` +
          `cost ${cost}, lines ${lines}, calls ${calls}, hits ${hits}, reasoning ${reasoning}, worst session ` +
          `${times(pooled.worstSession)}.`,
        'Cost · calls kept · hits · reasoning · exact, or bounded from that call on.',
      ],
      head: ['session', 'chosen on the others', 'the session under it'],
      rows,
      texts: 3,
    },
  ];
}

/** Describes the report in a paragraph. */
export function aboutReport({ sessions, recordings, leftOut, config, corpus }: LabReport): string {
  const calls = sessions.reduce((sum, session) => sum + session.calls, 0);
  return (
    `${sessions.length} sessions with at least ${config.least} model calls (${calls} calls) of ${recordings} ` +
    `recordings, sha256 ${corpus} (over the sorted hashes of their contents). ${leftOut} shorter sessions are left ` +
    'out. No model was called. Every policy makes the requests for the recorded answers, so no figure here is a ' +
    'solve rate.'
  );
}

/** Returns the tables of a report in order. */
export function labTables(report: LabReport): readonly LabTable[] {
  return [
    pooledTable(report),
    missedTable(report),
    priceTables(report),
    ...chosenTable(report),
    sessionTable(report),
    calibrationTable(report),
  ];
}
