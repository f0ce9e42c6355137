import { EdnError } from '../edn/errors.js';
import { print } from '../edn/print.js';
import { EdnDouble, EdnList, EdnMap, EdnSet, EdnSymbol, EdnTagged, type EdnValue, Keyword, kw, kwMap, list, sym } from '../edn/values.js';
import type { AttributeName } from './documents.js';
import { XtdbError } from './errors.js';

/** What a query answers with in one column: a variable, a pull or an aggregate. */
export type FindElement = EdnSymbol | EdnList;

/** How an argument is bound: `?x`, a collection `[?x ...]`, a tuple or a relation. */
export type InBinding = EdnSymbol | readonly EdnValue[];

/** A condition: a triple, a predicate `[(>= ?n ?lo)]`, or a list such as `(not …)`. */
export type WhereClause = readonly EdnValue[] | EdnList;

/**
 * A Datalog query as data [§3.7]. Values that vary belong into the arguments (`in`), never into the clauses: each distinct query is compiled once and
 * kept, and an argument can never become syntax.
 */
export interface DatalogQuery {
  readonly find: readonly FindElement[];
  readonly in?: readonly InBinding[];
  readonly where?: readonly WhereClause[];
  /** Variables or aggregates that stand in `find`. */
  readonly orderBy?: readonly (readonly [FindElement, 'asc' | 'desc'])[];
  /** Applied by the database to its bag of rows, before equal rows are merged. */
  readonly limit?: number;
  readonly offset?: number;
  /** Vectors that begin with their head, such as `[(older ?a ?b) …]`. */
  readonly rules?: readonly EdnValue[];
  /** Milliseconds after which the node stops the query; its own limit where that is shorter. */
  readonly timeoutMs?: number;
}

/** `(pull ?e [*])`, or only the attributes named. */
export const pull = (entity: EdnSymbol, attributes: readonly AttributeName[] | '*' = '*'): EdnList =>
  list(PULL, entity, attributes === '*' ? [STAR] : attributes.map((name) => kw(name)));

/** `[?e :attribute ?v]`; without a value `[?e :attribute]`, which asks only that the attribute is there. */
export const triple = (entity: EdnSymbol, attribute: AttributeName, value?: EdnSymbol): readonly EdnValue[] =>
  value === undefined ? [entity, kw(attribute)] : [entity, kw(attribute), value];

/** `[(name ?a ?b)]`, such as `[(>= ?n ?lo)]`. */
export const predicate = (name: string, ...args: readonly EdnSymbol[]): readonly EdnValue[] => [list(sym(name), ...args)];

/** `[?x ...]`: one binding for each member of an argument that is a vector. */
export const each = (variable: EdnSymbol): readonly EdnValue[] => [variable, ELLIPSIS];

const PULL = sym('pull');
const STAR = sym('*');
const ELLIPSIS = sym('...');

/**
 * The EDN text of a query with its arguments.
 *
 * @throws {XtdbError} `bad-request` if a value has no EDN form or a limit is no whole number
 */
export function encodeQuery(query: DatalogQuery, args: readonly EdnValue[]): string {
  const { orderBy, limit, offset, rules, timeoutMs } = query;
  for (const count of [limit, offset, timeoutMs]) {
    if (count !== undefined && (!Number.isSafeInteger(count) || count < 0))
      throw new XtdbError('bad-request', 'A limit, offset or timeout is a whole number from 0.');
  }
  try {
    return print(
      kwMap({
        query: kwMap({
          find: query.find,
          in: query.in,
          where: query.where,
          'order-by': orderBy?.map(([element, direction]) => [element, kw(direction)]),
          limit,
          offset,
          rules,
          timeout: timeoutMs,
        }),
        'in-args': args.length === 0 ? undefined : args,
      }),
    );
  } catch (cause) {
    if (!(cause instanceof EdnError)) throw cause;
    throw new XtdbError('bad-request', `The query cannot be written: ${cause.message}`, { cause });
  }
}

/** The rows with equal ones merged, in the order of their first appearance: over HTTP the database answers with a bag. */
export function distinctRows(rows: readonly (readonly EdnValue[])[]): readonly (readonly EdnValue[])[] {
  // Rows that each begin with another id differ: the documents behind it, which can be megabytes, need not be compared.
  if (beginApart(rows)) return rows;
  const seen = new Set<string>();
  return rows.filter((row) => {
    const key = keyOf(row);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Whether every row begins with a text that no other one begins with. */
function beginApart(rows: readonly (readonly EdnValue[])[]): boolean {
  const firsts = new Set<string>();
  for (const [first] of rows) {
    if (typeof first !== 'string') return false;
    firsts.add(first);
  }
  return firsts.size === rows.length;
}

/** A text that two values share only if they are equal. Strings carry their length, so that no content can look like structure. */
function keyOf(value: EdnValue): string {
  if (typeof value === 'string') return `"${value.length}:${value}`;
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return `${value};`;
  if (Array.isArray(value)) return `[${value.map(keyOf).join('')}]`;
  if (value instanceof Keyword) return `:${value.name};`;
  if (value instanceof EdnSymbol) return `'${value.name};`;
  if (value instanceof Date) return `@${value.getTime()};`;
  if (value instanceof EdnMap) return `{${mapEntryKeys(value).sort().join('')}}`;
  if (value instanceof EdnList) return `(${value.items.map(keyOf).join('')})`;
  if (value instanceof EdnSet) return `#{${value.items.map(keyOf).sort().join('')}}`;
  if (value instanceof EdnTagged) return `#${value.tag} ${keyOf(value.value)}`;
  if (value instanceof EdnDouble) return `${value.value};`;
  throw new XtdbError('bad-response', 'A row holds a kind of value that is not read here.');
}

function mapEntryKeys(map: EdnMap): string[] {
  const entries: string[] = [];
  for (let i = 0; i < map.flat.length; i += 2) entries.push(`${keyOf(map.flat[i] ?? null)}${keyOf(map.flat[i + 1] ?? null)}`);
  return entries;
}
