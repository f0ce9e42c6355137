import type { Cell } from '../report/markdown.js';
import type { PooledScore, ScoredSession } from '../scorecard/pooled.js';
import { COST_PARTS, type PolicyScore } from '../scorecard/score.js';
import type { LabFamily, LabPolicy, LabReport, Side } from './lab-report.js';
import { intervalText, reportedSide, verdictsOf } from './verdicts.js';

/** A table of a report, in the form from which Markdown and HTML are made. */
export interface LabTable {
  readonly heading: string;
  /** The paragraphs above the table. */
  readonly intro: readonly string[];
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** Number of columns with text. They precede the columns with numbers. */
  readonly texts: number;
}

const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;
const times = (ratio: number): string => ratio.toFixed(2);
const points = (value: number): string => (100 * value).toFixed(1);

/**
 * The columns for cost, kept lines and calls, cache hits and reasoning, which always appear
 * together.
 */
const FIGURES = [
  'cost where all fits',
  'cost of what was sent',
  'lines',
  'calls',
  'calls, inputs',
  'hits',
  'reasoning',
];
const figures = (pooled: PooledScore): readonly Cell[] => [
  pooled.vsRaw === undefined ? 'never fits' : intervalText(pooled.vsRaw),
  intervalText(pooled.vsSent),
  percent(pooled.linesKept.value),
  intervalText(pooled.callsKept, points),
  percent(pooled.inputsKept),
  percent(pooled.hits),
  percent(pooled.reasoningKept),
];

/**
 * Returns two settings for each family: the published setting, and the best setting of the training
 * side.
 */
function shown({ families, policies }: LabReport): readonly { readonly role: string; readonly policy: LabPolicy }[] {
  const find = (name: string | undefined) => policies.find((policy) => policy.name === name);
  return families.flatMap((family: LabFamily) => {
    const [published, best] = [find(family.published), find(family.best)];
    const role = family.kind === 'peer' ? 'published' : family.kind === 'own' ? 'default' : family.kind;
    return [
      ...(published === undefined ? [] : [{ role, policy: published }]),
      ...(best === undefined || best === published ? [] : [{ role: 'best on train', policy: best }]),
    ];
  });
}

const SIDES: Readonly<Record<Side, string>> = { train: 'Train', test: 'Test', all: 'All sessions' };

function sideTable(report: LabReport, side: Side, intro: readonly string[]): LabTable {
  const rows = shown(report).flatMap(({ role, policy: { name, fidelity, pooled } }): readonly (readonly Cell[])[] => {
    const one = pooled[side];
    if (one === undefined) return [];
    return [
      [
        name,
        role,
        fidelity,
        one.sessions,
        ...figures(one),
        times(one.worst),
        times(one.first60),
        one.withoutHeaviest === undefined ? '' : times(one.withoutHeaviest.vsSent),
      ],
    ];
  });
  return {
    heading: SIDES[side],
    intro,
    head: ['policy', 'setting', 'fidelity', 'sessions', ...FIGURES, 'worst', 'first 60', 'without the heaviest'],
    rows,
    texts: 3,
  };
}

function costTable(report: LabReport): LabTable {
  const side = reportedSide(report);
  const rows = shown(report).flatMap(({ policy: { name, pooled } }): readonly (readonly Cell[])[] => {
    const one = pooled[side];
    if (one === undefined) return [];
    return [
      [
        name,
        intervalText(one.vsSent),
        ...COST_PARTS.map((part) => percent(one.shares[part])),
        ...report.prices.tables.map((table) => times(one.byTable[table.name] ?? Number.NaN)),
        percent(one.callsKept.value),
      ],
    ];
  });
  const tables = report.prices.tables.map(
    ({ name, read, write, output, lifetimeMs }) =>
      `${name}: read ${read}, write ${write}, answer ${output}, lives ${lifetimeMs / 60_000} min`,
  );
  return {
    heading: 'Parts of the costs',
    intro: [
      'Shares under the first table of prices: `fixed` is system prompt and tools, `guide` the words and tools that ' +
        'a policy adds, `misses` the texts that were put back, `summaries` the calls that write one.',
      `Prices of ${report.prices.asOf}, as multiples of a fresh token: ${tables.join('; ')}. Their columns are costs ` +
        'of what was sent.',
    ],
    head: ['policy', 'cost of what was sent', ...COST_PARTS, ...report.prices.tables.map(({ name }) => name), 'calls'],
    rows,
    texts: 1,
  };
}

function missedTable(report: LabReport): LabTable {
  const side = reportedSide(report);
  const rows = shown(report).flatMap(({ policy: { name, pooled } }): readonly (readonly Cell[])[] => {
    const one = pooled[side];
    if (one === undefined) return [];
    return [
      [
        name,
        percent(one.linesKept.value),
        percent(one.activate, 2),
        percent(one.readAgain, 2),
        percent(one.lost, 2),
        one.repeats,
        Math.round(one.stale),
        one.rewrites,
        one.pressed,
        one.overWindow,
        Math.round(one.meanTokens),
        Math.round(one.peakTokens),
        one.storedPerCall === undefined ? '' : Math.round(one.storedPerCall),
        percent(one.exact),
      ],
    ];
  });
  const head = ['one activate away', 'to be read again', 'lost', 'put back', 'stale', 'rewrites', 'under pressure'];
  return {
    heading: 'What was missing',
    intro: [],
    head: ['policy', 'lines', ...head, 'over window', 'a call', 'peak', 'stored', 'exact'],
    rows,
    texts: 1,
  };
}

function settingsTable({ policies, split }: LabReport): LabTable {
  const rows = policies.flatMap(({ name, kind, pooled }): readonly (readonly Cell[])[] =>
    kind === 'baseline'
      ? []
      : [
          [
            name,
            ...(['train', 'test'] as const).flatMap((side) => {
              const one = pooled[side];
              return one === undefined
                ? ['', '', '', '']
                : [
                    times(one.vsSent.value),
                    percent(one.callsKept.value),
                    percent(one.linesKept.value),
                    times(one.worst),
                  ];
            }),
          ],
        ],
  );
  const columns = ['cost of what was sent', 'calls', 'lines', 'worst'];
  return {
    heading: 'Every setting',
    intro: [`${split.train.length} sessions for training, ${split.test.length} for the test.`],
    head: ['policy', ...['train', 'test'].flatMap((side) => columns.map((column) => `${side}: ${column}`))],
    rows,
    texts: 1,
  };
}

/** Formats a policy's figures on a session: two costs, calls kept, reasoning, last exact call. */
function sessionCell(score: PolicyScore, { raw, sent }: Pick<ScoredSession, 'raw' | 'sent'>, table: string): string {
  const { calls, callsKept } = score.needed;
  const upTo = (one: PolicyScore): number => one.series.cost.slice(0, raw.fits).reduce((sum, cost) => sum + cost, 0);
  return [
    raw.fits === 0 ? 'never fits' : times(upTo(score) / upTo(raw)),
    times((score.cost[table] ?? 0) / (sent.cost[table] ?? 1)),
    calls === 0 ? 'none needed' : percent(callsKept / calls, 0),
    percent(score.reasoning.kept / score.calls, 0),
    score.exact === score.calls ? 'exact' : `bounded@${score.exact}`,
  ].join(' · ');
}

function sessionTable(report: LabReport): LabTable {
  const { sessions, split, prices } = report;
  const names = [...new Set(shown(report).map(({ policy }) => policy.name))].filter((name) => name !== 'raw');
  const rows = sessions.map((session): readonly Cell[] => {
    const [raw, sent] = [session.policies.raw?.score, session.policies['as the harness sent it']?.score];
    return [
      session.name,
      session.group,
      split.train.includes(session.name) ? 'train' : 'test',
      session.calls,
      session.turns,
      raw === undefined ? '' : raw.fits,
      ...names.map((name) => {
        const score = session.policies[name]?.score;
        if (score === undefined || raw === undefined || sent === undefined)
          return `out of support: ${session.policies[name]?.unsupported ?? 'not compared'}`;
        return sessionCell(score, { raw, sent }, prices.tables[0]?.name ?? '');
      }),
    ];
  });
  return {
    heading: 'Each session',
    intro: [
      'Cost where all fits · cost of what was sent · calls kept · reasoning · exact, or bounded from that call on.',
    ],
    head: ['session', 'project', 'side', 'calls', 'turns', 'calls where all fits', ...names],
    rows,
    texts: 3,
  };
}

function calibrationTable({ sessions }: LabReport): LabTable {
  const rows = sessions.map(({ name, priceTable, calibration, marks, losses, complete }): readonly Cell[] => [
    name,
    priceTable,
    ...(calibration === undefined
      ? ['not counted', '', '', '', '', '']
      : [
          calibration.calls,
          Math.round(calibration.fixed),
          calibration.charsPerToken.toFixed(2),
          percent(calibration.difference),
          `${calibration.reads.agree} of ${calibration.reads.counted}`,
          calibration.price === undefined ? '' : times(calibration.price),
        ]),
    [
      ...Object.entries(calibration?.causes ?? {}).map(([cause, count]) => `${count}: ${cause}`),
      ...marks,
      ...(complete ? [] : ['the recording is cut off']),
      ...(losses === 0 ? [] : [`${losses} losses of the import`]),
    ].join('; '),
  ]);
  const sum = (of: (one: NonNullable<(typeof sessions)[number]['calibration']>) => number): number =>
    sessions.reduce((all, { calibration }) => all + (calibration === undefined ? 0 : of(calibration)), 0);
  const [reads, writes] = [sum((one) => one.reads.counted), sum((one) => one.writes.counted)];
  const agreed = (count: number, of: number): string =>
    of === 0 ? 'none were reported' : `${count} of ${of} agree (${percent(count / of)})`;
  return {
    heading: 'How far the predictions agree with the provider',
    intro: [
      `Cache reads that the provider reported: ${agreed(
        sum((one) => one.reads.agree),
        reads,
      )}. Cache writes: ` +
        `${agreed(
          sum((one) => one.writes.agree),
          writes,
        )}. A prediction agrees within 5 % of the prompt or 1,024 ` +
        'tokens. The price of all predicted prompts relative to the counted ones is in the column `price`.',
    ],
    head: ['session', 'prices', 'counted', 'fixed part', 'characters a token', 'size', 'reads agree', 'price', 'marks'],
    rows,
    texts: 2,
  };
}

/**
 * Shows the figures of our policy when each project uses the setting chosen on all other projects.
 */
function leftOutTable({ leftOutProjects }: LabReport): readonly LabTable[] {
  if (leftOutProjects === undefined) return [];
  const { chosen, pooled } = leftOutProjects;
  return [
    {
      heading: 'Every project with a setting of the others',
      intro: [
        'Each project runs with the cheapest of our settings that keeps 95 % of the calls and 98 % of the lines on ' +
          'all other projects; if none does, with the one that keeps most calls. The last row has all projects.',
      ],
      head: ['project', 'chosen on the others', ...FIGURES, 'worst'],
      rows: [
        ...chosen.map(({ sessions, policy }): readonly Cell[] => [
          sessions.join(', '),
          policy,
          ...FIGURES.map(() => ''),
          '',
        ]),
        ['all', '', ...figures(pooled), times(pooled.worst)],
      ],
      texts: 2,
    },
  ];
}

/** Describes the report in a paragraph. */
export function aboutReport({ sessions, recordings, leftOut, missing, config, corpus }: LabReport): string {
  const calls = sessions.reduce((sum, session) => sum + session.calls, 0);
  return (
    `${sessions.length} sessions with at least ${config.least} model calls (${calls} calls) of ${recordings} ` +
    `recordings, sha256 ${corpus} (over the sorted hashes of their contents). ${leftOut} shorter sessions are left ` +
    `out.${missing === 0 ? '' : ` The run was interrupted: ${missing} recordings are missing.`} No model was called.`
  );
}

/** Returns the tables of a report in order. */
export function labTables(report: LabReport): readonly LabTable[] {
  const isSplit = reportedSide(report) === 'test';
  return [
    ...(isSplit
      ? [sideTable(report, 'test', verdictsOf(report)), sideTable(report, 'train', []), ...leftOutTable(report)]
      : [sideTable(report, 'all', verdictsOf(report)), ...leftOutTable(report)]),
    costTable(report),
    missedTable(report),
    settingsTable(report),
    sessionTable(report),
    calibrationTable(report),
  ];
}
