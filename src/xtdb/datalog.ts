import { EdnError } from '../edn/errors.js';
import { print } from '../edn/print.js';
import {
  EdnDouble,
  EdnList,
  EdnMap,
  EdnSet,
  EdnSymbol,
  EdnTagged,
  type EdnValue,
  Keyword,
  kw,
  kwMap,
  list,
  sym,
} from '../edn/values.js';
import type { AttributeName } from './documents.js';
import { XtdbError } from './errors.js';

/** One column of a query's result: a variable, a pull or an aggregate. */
export type FindElement = EdnSymbol | EdnList;

/** The binding of an argument: `?x`, a collection `[?x ...]`, a tuple or a relation. */
export type InBinding = EdnSymbol | readonly EdnValue[];

/** A condition: a triple, a predicate `[(>= ?n ?lo)]`, or a list such as `(not …)`. */
export type WhereClause = readonly EdnValue[] | EdnList;

/**
 * A Datalog query as data [§3.7]. Pass variable values as arguments (`in`), never in the clauses.
 * The node compiles and caches each distinct query, and an argument can never become syntax.
 */
export interface DatalogQuery {
  readonly find: readonly FindElement[];
  readonly in?: readonly InBinding[];
  readonly where?: readonly WhereClause[];
  /** Variables or aggregates that occur in `find`. */
  readonly orderBy?: readonly (readonly [FindElement, 'asc' | 'desc'])[];
  /** The database applies the limit before equal rows are merged. */
  readonly limit?: number;
  readonly offset?: number;
  /** Vectors that begin with their head, such as `[(older ?a ?b) …]`. */
  readonly rules?: readonly EdnValue[];
  /** Milliseconds after which the node stops the query, unless its own limit is shorter. */
  readonly timeoutMs?: number;
}

/** `(pull ?e [*])`, or only the given attributes. */
export const pull = (entity: EdnSymbol, attributes: readonly AttributeName[] | '*' = '*'): EdnList =>
  list(PULL, entity, attributes === '*' ? [STAR] : attributes.map((name) => kw(name)));

/**
 * `[?e :attribute ?v]`; without a value `[?e :attribute]`, which only requires that the attribute
 * exists.
 */
export const triple = (entity: EdnSymbol, attribute: AttributeName, value?: EdnSymbol): readonly EdnValue[] =>
  value === undefined ? [entity, kw(attribute)] : [entity, kw(attribute), value];

/** `[(name ?a ?b)]`, such as `[(>= ?n ?lo)]`. */
export const predicate = (name: string, ...args: readonly EdnSymbol[]): readonly EdnValue[] => [
  list(sym(name), ...args),
];

/** `[?x ...]`: one binding per member of a vector argument. */
export const each = (variable: EdnSymbol): readonly EdnValue[] => [variable, ELLIPSIS];

const PULL = sym('pull');
const STAR = sym('*');
const ELLIPSIS = sym('...');

/**
 * Returns the EDN text of a query with its arguments.
 *
 * @throws {XtdbError} `bad-request` if a value has no EDN form or a limit is not a whole number
 */
export function encodeQuery(query: DatalogQuery, args: readonly EdnValue[]): string {
  const { orderBy, limit, offset, rules, timeoutMs } = query;
  for (const count of [limit, offset, timeoutMs]) {
    if (count !== undefined && (!Number.isSafeInteger(count) || count < 0))
      throw new XtdbError('bad-request', 'A limit, offset or timeout must be a whole number from 0.');
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

/**
 * Merges equal rows, in the order of their first appearance. Over HTTP the database returns equal
 * rows repeatedly.
 */
export function distinctRows(rows: readonly (readonly EdnValue[])[]): readonly (readonly EdnValue[])[] {
  // If all rows begin with different ids, they differ. Documents, which can have megabytes, are
  // then not compared.
  if (beginApart(rows)) return rows;
  const seen = new Set<string>();
  return rows.filter((row) => {
    const key = keyOf(row);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Returns whether every row begins with a different text. */
function beginApart(rows: readonly (readonly EdnValue[])[]): boolean {
  const firsts = new Set<string>();
  for (const [first] of rows) {
    if (typeof first !== 'string') return false;
    firsts.add(first);
  }
  return firsts.size === rows.length;
}

/**
 * Returns a text that two values share only if they are equal. Strings carry their length, so that
 * no content can look like structure.
 */
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
  throw new XtdbError('bad-response', 'A row contains an unsupported kind of value.');
}

function mapEntryKeys(map: EdnMap): string[] {
  const entries: string[] = [];
  for (let i = 0; i < map.flat.length; i += 2)
    entries.push(`${keyOf(map.flat[i] ?? null)}${keyOf(map.flat[i + 1] ?? null)}`);
  return entries;
}
