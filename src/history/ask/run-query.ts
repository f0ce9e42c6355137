import { EdnError } from '../../edn/errors.js';
import { parse } from '../../edn/parse.js';
import { EdnDouble, EdnList, type EdnMap, EdnSet, EdnSymbol, EdnTagged, type EdnValue, Keyword } from '../../edn/values.js';
import type { Json } from '../../objects/canonical-json.js';
import { reportedTime } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { type DatalogQuery, distinctRows } from '../../xtdb/datalog.js';
import { XtdbError } from '../../xtdb/errors.js';
import { HistoryError } from '../rebuild/history-error.js';
import { columnNames, type ParsedQuery, parseQuery } from './parse-query.js';

/** Rows of a query that sets no limit of its own. */
const DEFAULT_ROWS = 1_000;
/** The most rows that a query may ask for. */
const MOST_ROWS = 100_000;
/** How long a query may run if nothing else is asked for, milliseconds. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** The longest that a query may ask for, milliseconds. */
const MOST_TIMEOUT_MS = 30_000;

/** How far a query may go. */
export interface QueryLimits {
  readonly limit?: number | undefined;
  readonly timeoutMs?: number | undefined;
  /** EDN text of a vector: one value for each binding of `:in`. */
  readonly args?: string | undefined;
}

/** What a query found. */
export interface QueryAnswer {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Json[])[];
  /** How many rows were asked for; more than these were there if `isCut`. */
  readonly limit: number;
  readonly isCut: boolean;
}

/** A value of a row as JSON: keywords with their colon, times as ISO 8601 (null for the end of time), maps with their keys as text. */
export function toJson(value: EdnValue): Json {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (Array.isArray(value)) return value.map(toJson);
  if (value instanceof Date) return reportedTime(value)?.toISOString() ?? null;
  if (value instanceof Keyword) return `:${value.name}`;
  if (value instanceof EdnSymbol) return value.name;
  if (value instanceof EdnDouble) return value.value;
  if (value instanceof EdnList || value instanceof EdnSet) return value.items.map(toJson);
  if (value instanceof EdnTagged) return toJson(value.value);
  const map = value as EdnMap;
  const entries = Array.from({ length: map.size }, (_, i): [string, Json] => {
    const key = map.flat[2 * i] ?? null;
    return [
      key instanceof Keyword ? key.name : typeof key === 'string' ? key : JSON.stringify(toJson(key)),
      toJson(map.flat[2 * i + 1] ?? null),
    ];
  });
  return Object.fromEntries(entries);
}

function argumentsOf(text: string | undefined, { in: bindings }: ParsedQuery): readonly EdnValue[] {
  const wanted = bindings?.length ?? 0;
  let given: EdnValue = [];
  try {
    given = text === undefined ? [] : parse(text);
  } catch (cause) {
    if (!(cause instanceof EdnError)) throw cause;
    throw new HistoryError('malformed-query', `the arguments cannot be read: ${cause.message}`, { cause });
  }
  if (!Array.isArray(given) || given.length !== wanted)
    throw new HistoryError('malformed-query', `:in binds ${wanted} values: give them as one vector, such as ["file" 10]`);
  return given;
}

/** How the node's front says that a query makes a value out of too many others (`growth.clj`). */
const OUTGROWS = /a value made out of more than \d+ others|a rule that calls itself and puts together values that came through it/;

/** What the database said of a query, in a form for its author. */
function explained(error: unknown, timeoutMs: number): unknown {
  if (!(error instanceof XtdbError)) return error;
  const options = { cause: error };
  if (error.code === 'timeout' || /Stopped after|timed out|timeout/i.test(error.message)) {
    return new HistoryError(
      'query-timeout',
      `the query was stopped after ${timeoutMs / 1_000} s: narrow it, or give it more time`,
      options,
    );
  }
  const [outgrows] = OUTGROWS.exec(error.message) ?? [];
  if (outgrows !== undefined) {
    const why = `the node refuses ${outgrows}: what the query makes could outgrow the memory of the database`;
    return new HistoryError('query-refused', why, options);
  }
  if (error.errorKey?.includes('fn-not-allowed') === true) return new HistoryError('query-refused', error.message, options);
  if (error.code === 'bad-request')
    return new HistoryError('malformed-query', `the database does not take the query: ${error.message}`, options);
  return error;
}

/**
 * Runs a reviewer's query at a basis: read into data, checked, with a limit on rows and time that the node keeps too, so that nothing goes
 * on running.
 * @throws {HistoryError} `malformed-query`, `query-refused`, `query-timeout`
 * @throws {XtdbError}
 */
export async function runQuery(snapshot: StoreSnapshot, text: string, limits: QueryLimits = {}): Promise<QueryAnswer> {
  const query = parseQuery(text);
  const args = argumentsOf(limits.args, query);
  const timeoutMs = Math.min(limits.timeoutMs ?? DEFAULT_TIMEOUT_MS, MOST_TIMEOUT_MS);
  const asked = Math.min(query.limit ?? Number.POSITIVE_INFINITY, limits.limit ?? Number.POSITIVE_INFINITY);
  const limit = Math.min(asked === Number.POSITIVE_INFINITY ? DEFAULT_ROWS : asked, MOST_ROWS);
  const { find, in: bindings, where, rules, orderBy, offset } = query;
  const sent = {
    find,
    where,
    limit: limit + 1,
    timeoutMs,
    ...defined({ in: bindings, rules, orderBy, offset }),
  } as unknown as DatalogQuery;
  try {
    // The node stops the query itself; the wait for it is a little longer, so that it is the node that says so.
    const rows = await snapshot.rows(sent, args, { timeoutMs: timeoutMs + 2_000 });
    const isOwnLimit = query.limit !== undefined && query.limit <= limit;
    return {
      columns: columnNames(query),
      rows: distinctRows(rows.slice(0, limit)).map((row) => row.map(toJson)),
      limit,
      isCut: rows.length > limit && !isOwnLimit,
    };
  } catch (error) {
    throw explained(error, timeoutMs);
  }
}
