import { type Column, fittedTable, wrapped } from '../cli/fitted-table.js';
import { grouped } from '../cli/output.js';
import { homeless, localSecond, shortCount } from '../cli/shown-values.js';
import { costCell } from '../review/cli/session-table.js';
import { DOLLAR_PRICES_AS_OF } from '../review/money/dollar-prices.js';
import { defined } from '../values/defined.js';
import type { ContextUse } from './context-use.js';
import { allTokens } from './counted-tokens.js';
import { listedCost, type Shown } from './first-screen.js';
import type { CacheLoss } from './session-facts.js';
import type { CostKey, CostRow, Costs } from './sum-costs.js';

const COLUMNS: readonly Column[] = [
  { heading: '', share: 1, least: 22 },
  { heading: 'sessions', align: 'right', rank: 1 },
  { heading: 'calls', align: 'right', rank: 2 },
  { heading: 'input', align: 'right', rank: 3 },
  { heading: 'cache write', align: 'right', rank: 3 },
  { heading: 'cache read', align: 'right', rank: 3 },
  { heading: 'output', align: 'right', rank: 3 },
  { heading: 'cost', align: 'right' },
];

/**
 * The part of a long key that stays when it is shortened. Versions of a model differ at the end.
 */
const KEPT: Partial<Record<CostKey, Column['keep']>> = { project: 'end', model: 'ends' };

/** The reasons for a lost cache, in words for people. */
const REASONS: Readonly<Record<CacheLoss, string>> = {
  pause: "a pause longer than the cache's lifetime",
  compaction: 'a compaction rewrote the conversation',
  rewind: 'the conversation went back to an earlier place',
  'model change': 'another model answered',
  other: 'the request changed early, or the provider dropped it',
};

const percent = (part: number, whole: number): string =>
  whole === 0 ? '0 %' : `${Math.round((100 * part) / whole)} %`;

function costRow(row: CostRow, home: string): readonly string[] {
  return [
    homeless(row.key, home),
    grouped(row.sessions),
    grouped(row.calls),
    shortCount(row.fresh),
    shortCount(row.cacheWrite),
    shortCount(row.cacheRead),
    shortCount(row.output),
    costCell(listedCost(row)),
  ];
}

function lostLines({ lost, total }: Costs, shown: Shown): readonly string[] {
  if (lost.length === 0) return [];
  const { colours } = shown;
  const tokens = lost.reduce((sum, one) => sum + one.tokens, 0);
  const cost = costCell(
    listedCost({
      calls: lost.reduce((sum, one) => sum + one.calls, 0),
      unpriced: lost.reduce((sum, one) => sum + one.unpriced, 0),
      dollars: lost.reduce((sum, one) => sum + one.dollars, 0),
    }),
  );
  const all = allTokens(total);
  const rows = lost.map((one) => [
    REASONS[one.reason],
    grouped(one.calls),
    shortCount(one.tokens),
    costCell(listedCost(one)),
  ]);
  return [
    '',
    ...wrapped(
      `Lost cache: ${shortCount(tokens)} of ${shortCount(all)} tokens, ${cost === '' ? 'cost unknown' : cost}`,
      shown.width,
    ).map(colours.bold),
    ...fittedTable(
      [
        { heading: 'why', share: 1, least: 20 },
        { heading: 'calls', align: 'right' },
        { heading: 'tokens', align: 'right' },
        { heading: 'cost', align: 'right' },
      ],
      rows,
      shown,
    ),
  ];
}

const SHOWN_TOOLS = 5;

function useLines(use: ContextUse, shown: Shown): readonly string[] {
  if (use.tokens === 0) return [];
  const tools = Object.entries(use.tools)
    .sort(([, a], [, b]) => b.unused - a.unused)
    .slice(0, SHOWN_TOOLS);
  const head =
    `Never used: ${percent(use.unused, use.tokens)} of tool results if each counts once, ` +
    `${percent(use.sentUnused, use.sent)} if it counts in each call that sent it`;
  return [
    '',
    ...wrapped(head, shown.width).map(shown.colours.bold),
    ...fittedTable(
      [
        { heading: 'tool', share: 1, least: 10 },
        { heading: 'tokens of results', align: 'right' },
        { heading: 'tokens never used', align: 'right' },
        { heading: 'share', align: 'right' },
      ],
      tools.map(([tool, one]) => [
        tool,
        shortCount(one.tokens),
        shortCount(one.unused),
        percent(one.unused, one.tokens),
      ]),
      shown,
    ),
  ];
}

const callsText = (calls: number): string => `${grouped(calls)} ${calls === 1 ? 'call' : 'calls'}`;

/** Returns the limits of the figures as lines of one sentence each. */
export function limitsOf({ unpriced, repeated, uncounted }: Costs): readonly string[] {
  const models = [...unpriced].map(
    ([model, calls]) => `${model === '' ? 'an unnamed model' : model} (${callsText(calls)})`,
  );
  return [
    'Input, cache and output are tokens. Those of results are estimates.',
    `Costs are list prices of ${DOLLAR_PRICES_AS_OF} unless the agent recorded its own. Subscriptions bill otherwise.`,
    'Long prompts cost more than counted here.',
    ...(models.length === 0 ? [] : [`No price is known for ${models.join(', ')}. The sign > marks sums without them.`]),
    ...(uncounted === 0
      ? []
      : [`${callsText(uncounted)} without token counts in the recording ${uncounted === 1 ? 'is' : 'are'} left out.`]),
    ...(repeated === 0 ? [] : [`${grouped(repeated)} calls are in several recordings and count once.`]),
    'A result counts as used if a line of it is in a later answer. The model may have used it otherwise.',
  ];
}

/** The costs to show, and how to show them. */
export interface ShownCosts {
  readonly costs: Costs;
  readonly use: ContextUse;
  readonly by: CostKey;
  /** Milliseconds since 1970. */
  readonly since?: number | undefined;
  readonly home: string;
}

/** Returns the lines of `palimpsest costs`. */
export function costsLines({ costs, use, by, since, home }: ShownCosts, shown: Shown): readonly string[] {
  const { colours } = shown;
  const from = since === undefined ? '' : ` since ${localSecond(new Date(since))}`;
  if (costs.total.calls === 0) return wrapped(`No model calls with token counts were found${from}.`, shown.width);
  const columns = COLUMNS.map((column, i) =>
    i === 0 ? { ...column, heading: by, ...defined({ keep: KEPT[by] }) } : column,
  );
  const rows = [...costs.rows, { ...costs.total, key: 'total' }].map((row) => costRow(row, home));
  const [heading = '', ...lines] = fittedTable(columns, rows, shown);
  return [
    heading,
    ...lines.slice(0, -1),
    colours.bold(lines.at(-1) ?? ''),
    ...lostLines(costs, shown),
    ...useLines(use, shown),
    '',
    ...limitsOf(costs).flatMap((line) => wrapped(line, shown.width, '# ').map(colours.dim)),
  ];
}
