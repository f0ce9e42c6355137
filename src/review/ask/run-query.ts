import { performance } from 'node:perf_hooks';
import { EdnError } from '../../edn/errors.js';
import { parse } from '../../edn/parse.js';
import {
  EdnDouble,
  EdnList,
  type EdnMap,
  EdnSet,
  EdnSymbol,
  EdnTagged,
  type EdnValue,
  Keyword,
} from '../../edn/values.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import type { Sha256 } from '../../objects/ids.js';
import { reportedTime } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { type DatalogQuery, distinctRows } from '../../xtdb/datalog.js';
import { XtdbError } from '../../xtdb/errors.js';
import { LARGEST_ARGUMENT } from './folded-rows.js';
import { type Deadline, type FoldedRow, FoldedValues } from './folded-values.js';
import { columnNames, type ParsedQuery, parseQuery } from './parse-query.js';
import { AnswerSize, type PullSources, pulledDocuments, pullOf } from './pulled-documents.js';
import { constantsOf, isVariable, symbolNames, tripleOf } from './query-terms.js';
import { reachedEntities } from './reached-entities.js';
import { rewriteQuery } from './rewrite-query.js';

/** Default limit of a query's rows. */
const DEFAULT_ROWS = 1_000;
/** Maximum limit of a query's rows. */
const MOST_ROWS = 100_000;
/** Number of contents that are read concurrently. */
const CONTENTS_AT_ONCE = 100;
/** Default time limit of a query in milliseconds. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** Maximum time limit of a query in milliseconds. */
const MOST_TIMEOUT_MS = 30_000;

/** Limits and options of a query. */
export interface QueryLimits {
  readonly limit?: number | undefined;
  readonly timeoutMs?: number | undefined;
  /** EDN text of a vector with one value per binding of `:in`. */
  readonly args?: string | undefined;
  /** Queries the stored documents, including parts, instead of the SSOT's documents. */
  readonly storage?: boolean | undefined;
}

/** The answer to a query. */
export interface QueryAnswer {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Json[])[];
  /** The row limit. With `isCut` there were more rows. */
  readonly limit: number;
  readonly isCut: boolean;
}

/**
 * Converts a value of a row to JSON. Keywords keep their colon, maps get text keys, and times
 * become ISO 8601 (null for the end of time).
 */
export function toJson(value: EdnValue): Json {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return value;
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
    throw new HistoryError(
      'malformed-query',
      `:in binds ${wanted} values: give them as one vector, such as ["file" 10]`,
    );
  return given;
}

/**
 * Matches the message of the node's front about a query that builds a value from too many other
 * values (`growth.clj`).
 */
const OUTGROWS =
  /a value made out of more than \d+ others|a rule that calls itself and puts together values that came through it/;

/** Converts the database's error to one for the query's author. */
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
    const why = `the node refuses ${outgrows}: the result of the query could exceed the memory of the database`;
    return new HistoryError('query-refused', why, options);
  }
  if (/too-much-memory|value-too-large/.test(error.errorKey ?? ''))
    return new HistoryError('query-too-wide', `the node stopped the query: ${error.message}`, options);
  if (error.errorKey?.includes('fn-not-allowed') === true)
    return new HistoryError('query-refused', error.message, options);
  if (error.code === 'bad-request')
    return new HistoryError('malformed-query', `the database rejects the query: ${error.message}`, options);
  return error;
}

/**
 * Returns the variables of `:content` clauses that occur elsewhere only in `:find`. Only equality
 * of their values matters, and equal values have equal hashes.
 */
function contentVariables({
  find,
  where,
  in: bindings = [],
  rules = [],
  orderBy = [],
}: ParsedQuery): ReadonlySet<string> {
  const contents: string[] = [];
  const visit = (clause: EdnValue): void => {
    const triple = tripleOf(clause);
    if (clause instanceof EdnList) clause.items.forEach(visit);
    else if (triple?.a instanceof Keyword && triple.a.name === 'content' && isVariable(triple.v))
      contents.push(triple.v.name);
  };
  where.forEach(visit);
  const plain = find.filter(isVariable).map(({ name }) => name);
  const everywhere = symbolNames([...find, ...where, ...bindings, ...rules, ...orderBy.map(([element]) => element)]);
  const count = (names: readonly string[], wanted: string): number => names.filter((name) => name === wanted).length;
  return new Set(contents.filter((name) => count(everywhere, name) === count([...contents, ...plain], name)));
}

/** Reads the contents of some hashes; null stays null. */
async function contentsOf(
  { snapshot, size }: PullSources,
  hashes: readonly EdnValue[],
): Promise<ReadonlyMap<EdnValue, Json>> {
  const wanted = [...new Set(hashes)].filter((hash): hash is Sha256 => typeof hash === 'string');
  const found = new Map<EdnValue, Json>([[null, null]]);
  for (let i = 0; i < wanted.length; i += CONTENTS_AT_ONCE) {
    for (const [hash, content] of await snapshot.contents(wanted.slice(i, i + CONTENTS_AT_ONCE))) {
      size.add(content);
      found.set(hash, content);
    }
  }
  return found;
}

/** Contents of more than one chunk become an argument of the query. */
const LONG_CONTENTS = {
  what: 'the long contents that the query can reach',
  way:
    'restrict the objects by other clauses, as in [?e :chat_ref "chat:S"], or name them through :in and --args, or ' +
    'read one with palimpsest cat',
  most: LARGEST_ARGUMENT,
};

/** A query as sent, and the conversion of its rows to the answer. */
interface PreparedQuery {
  readonly query: Pick<ParsedQuery, 'find' | 'in' | 'where' | 'rules'>;
  readonly args: readonly EdnValue[];
  readonly answer: (rows: readonly (readonly EdnValue[])[]) => Promise<readonly (readonly Json[])[]>;
}

const asStored = (query: ParsedQuery, args: readonly EdnValue[]): PreparedQuery => ({
  query,
  args,
  answer: async (rows) => rows.map((row) => row.map(toJson)),
});

/** Rewrites a query over the SSOT's documents into one over the stored documents (decision G11). */
async function overDocuments(
  snapshot: StoreSnapshot,
  query: ParsedQuery,
  { args, deadline }: { readonly args: readonly EdnValue[]; readonly deadline: Deadline },
): Promise<PreparedQuery> {
  const pulls = query.find.map(pullOf);
  const find = query.find.map((element, i) => pulls[i]?.variable ?? element);
  const { timeoutMs } = deadline;
  const reached = reachedEntities(snapshot, query, { args, timeoutMs });
  const values = new FoldedValues(snapshot, reached, deadline);
  const sources = { snapshot, values, size: new AnswerSize() };
  const longContents = async (entity: EdnValue): Promise<readonly FoldedRow[]> => {
    const all = await snapshot.longContents();
    const meant =
      all.length === 0 ? undefined : (constantsOf(entity) ?? (isVariable(entity) ? await reached(entity) : undefined));
    const ids = meant === undefined ? undefined : new Set<EdnValue>(meant);
    const found = all.filter(([id]) => ids?.has(id) ?? true);
    const contents = await contentsOf(
      { ...sources, size: new AnswerSize(LONG_CONTENTS) },
      found.map(([, hash]) => hash),
    );
    return found.map(([id, hash]) => [id, String(contents.get(hash))]);
  };
  const hashed = contentVariables(query);
  const rewritten = await rewriteQuery(query, { values, hashed, longContents });
  const columnOf = async (i: number, cells: readonly EdnValue[]): Promise<(cell: EdnValue) => Json> => {
    const [pull, element] = [pulls[i], find[i]];
    if (pull !== undefined) {
      const ids = cells.filter((cell) => typeof cell === 'string');
      const documents = await pulledDocuments(sources, ids, pull.shape);
      return (cell) => documents.get(String(cell)) ?? null;
    }
    if (!(element instanceof EdnSymbol) || !hashed.has(element.name)) return toJson;
    const contents = await contentsOf(sources, cells);
    return (cell) => contents.get(cell) ?? null;
  };
  const answer = async (rows: readonly (readonly EdnValue[])[]): Promise<readonly (readonly Json[])[]> => {
    const columns: ((cell: EdnValue) => Json)[] = [];
    for (const i of find.keys())
      columns.push(
        await columnOf(
          i,
          rows.map((row) => row[i] ?? null),
        ),
      );
    const answered = rows.map((row) => row.map((cell, i) => columns[i]?.(cell) ?? null));
    // Two objects can give equal pulls, and an answer is a set of rows.
    return pulls.every((pull) => pull === undefined)
      ? answered
      : [...new Map(answered.map((row) => [canonicalJson(row), row])).values()];
  };
  const { in: bindings, where, rules } = rewritten;
  const some = <T>(items: readonly T[]): readonly T[] | undefined => (items.length === 0 ? undefined : items);
  return { query: { find, in: some(bindings), where, rules: some(rules) }, args: [...args, ...rewritten.args], answer };
}

/**
 * Runs a reviewer's query at a basis. Parses and checks it, and limits rows and time; the node
 * enforces both limits too. The answer is as if the database stored the SSOT's documents (decision
 * G11). With `storage`, it queries the documents as they are stored.
 *
 * @throws {HistoryError} `malformed-query`, `query-refused`, `query-too-wide`, `query-timeout`
 * @throws {XtdbError}
 */
export async function runQuery(snapshot: StoreSnapshot, text: string, limits: QueryLimits = {}): Promise<QueryAnswer> {
  const query = parseQuery(text);
  const given = argumentsOf(limits.args, query);
  const timeoutMs = Math.min(limits.timeoutMs ?? DEFAULT_TIMEOUT_MS, MOST_TIMEOUT_MS);
  const asked = Math.min(query.limit ?? Number.POSITIVE_INFINITY, limits.limit ?? Number.POSITIVE_INFINITY);
  const limit = Math.min(asked === Number.POSITIVE_INFINITY ? DEFAULT_ROWS : asked, MOST_ROWS);
  const { orderBy, offset } = query;
  const deadline = { timeoutMs, at: performance.now() + timeoutMs };
  try {
    const prepared =
      limits.storage === true
        ? asStored(query, given)
        : await overDocuments(snapshot, query, { args: given, deadline });
    const { find, in: bindings, where, rules } = prepared.query;
    const left = Math.max(1, Math.round(deadline.at - performance.now()));
    const sent = {
      find,
      where,
      limit: limit + 1,
      timeoutMs: left,
      ...defined({ in: bindings, rules, orderBy, offset }),
    } as unknown as DatalogQuery;
    // Waits slightly longer than the node's own limit, so that the node reports the timeout.
    const rows = await snapshot.rows(sent, prepared.args, { timeoutMs: left + 2_000 });
    const isOwnLimit = query.limit !== undefined && query.limit <= limit;
    return {
      columns: columnNames(query),
      rows: await prepared.answer(distinctRows(rows.slice(0, limit))),
      limit,
      isCut: rows.length > limit && !isOwnLimit,
    };
  } catch (error) {
    throw explained(error, timeoutMs);
  }
}
