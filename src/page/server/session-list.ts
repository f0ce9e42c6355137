import type { Timeline } from '../../history/rebuild/timeline.js';
import { wireShape } from '../../http/wire-shape.js';
import { sinceTime } from '../../review/ask/since-time.js';
import { shownBasis } from '../../review/http/review-answers.js';
import { shapedRow } from '../../review/http/session-list.js';
import { tokensOf } from '../../review/money/call-cost.js';
import { DOLLAR_PRICES_AS_OF } from '../../review/money/dollar-prices.js';
import type { SessionRow, SessionRows } from '../../review/rows/session-rows.js';
import { PAGE_ANSWERS, type PageBody } from './page-schemas.js';

/** Sort keys of a list, greatest first. A leading `-` reverses the order. */
export const SORTS = ['used', 'cost', 'tokens', 'calls', 'failures', 'title'] as const;
type Sort = (typeof SORTS)[number];

const KEYS: Readonly<Record<Sort, (row: SessionRow) => number | string>> = {
  used: ({ to }) => to.getTime(),
  cost: ({ figures }) => figures?.spent.amount ?? -1,
  tokens: ({ figures }) => (figures === undefined ? -1 : tokensOf(figures.spent)),
  calls: ({ figures }) => figures?.calls ?? -1,
  failures: ({ figures }) => figures?.failures ?? -1,
  title: ({ title }) => title.toLowerCase(),
};

/** Maximum wait for figures, in milliseconds. The page asks again for later ones. */
const MOST_MS = 200;

/** The parameters of a list. */
export interface ListQuestion {
  readonly text?: string | undefined;
  readonly agent?: string | undefined;
  readonly cwd?: string | undefined;
  readonly since?: string | undefined;
  readonly sort?: string | undefined;
  readonly limit: number;
  readonly from: number;
}

function sorted(rows: readonly SessionRow[], sort = 'used'): readonly SessionRow[] {
  const isRising = sort.startsWith('-');
  const key = KEYS[sort.replace(/^-/, '') as Sort];
  const sign = isRising ? 1 : -1;
  return [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === y ? 0 : x < y ? -sign : sign;
  });
}

/** Returns a part of the list of sessions. */
export async function sessionList(
  timeline: Timeline,
  list: SessionRows,
  { since, sort, limit, from, ...filter }: ListQuestion,
): Promise<PageBody<'SessionList'>> {
  const { present } = timeline;
  const wanted = { ...filter, since: since === undefined ? undefined : sinceTime(since, new Date()) };
  const found = await list.list(present, wanted);
  const rows = sort?.endsWith('title') === true ? await list.described(present, found) : found;
  const shown = await list.described(present, sorted(rows, sort).slice(from, from + limit));
  const counted = await list.withFigures(present, shown, { mostMs: MOST_MS });
  const isCounted = ({ figures, withSubAgents }: SessionRow): boolean =>
    figures !== undefined && (withSubAgents === undefined || withSubAgents.spent !== undefined);
  const now = new Map(counted.map((row) => [row.id, isCounted(row)]));
  return wireShape(PAGE_ANSWERS.SessionList, {
    basis: shownBasis(present.basis),
    total: rows.length,
    counted: rows.filter(({ id, figures }) => now.get(id) ?? figures !== undefined).length,
    pricesAsOf: DOLLAR_PRICES_AS_OF,
    sessions: counted.map(shapedRow),
  });
}
