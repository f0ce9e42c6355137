import { EdnMap, EdnSet, type EdnSymbol, type EdnValue, kw, sym } from '../../edn/values.js';
import { hashText } from '../../objects/hashes.js';
import { MAP_KEY, VALUE_KEY } from '../../xtdb/documents.js';
import type { FoldedRow, FoldedValues } from './folded-values.js';
import type { ParsedQuery } from './parse-query.js';
import { symbolNames } from './query-terms.js';

/** One clause of a query. */
export type Clause = EdnValue;
/** Clauses that all hold. */
export type Clauses = readonly Clause[];

/** What the places of a clause say. */
export interface Triple {
  readonly e: EdnValue;
  readonly a: string;
  readonly v: EdnValue | undefined;
}

/**
 * Where a clause stands: on the top level, in a rule, of which nothing is known, or in a join or negation, where some variables or all have a value
 * when the clause is asked.
 */
export type Scope = 'top' | 'rule' | 'all' | ReadonlySet<string>;

/** Where no variable has a value yet. */
export const NOTHING_BOUND: Scope = new Set();

/** Whether a variable has a value where a clause stands. */
export const isBound = (scope: Scope, { name }: EdnSymbol): boolean =>
  scope === 'all' || (typeof scope !== 'string' && scope.has(name));

/** Stands behind a variable that takes each of many values. */
export const ELLIPSIS = sym('...');
/** What a look-up answers for an entity without the attribute; no attribute has it for a value. */
export const ABSENT = kw('absent');

/** A triple; without a value it says that the entity has the attribute. */
export const triple = (e: EdnValue, a: string, v?: EdnValue): Clause => (v === undefined ? [e, kw(a)] : [e, kw(a), v]);
/** A constant that stands for any of some values. */
export const anyOf = (values: readonly EdnValue[]): EdnValue =>
  values.length === 1 ? (values[0] ?? null) : new EdnSet(values);

/** A constant as `args` has it in the database. */
export function storedArgs(value: EdnValue): EdnValue {
  const [key] = value instanceof EdnMap && value.size === 1 ? value.flat : [];
  return key === MAP_KEY || key === VALUE_KEY ? new EdnMap([MAP_KEY, value]) : value;
}

/** The content's hash stands for it: they are equal together. */
export const hashOf = (content: EdnValue): EdnValue => (typeof content === 'string' ? hashText(content) : content);

/** A prefix that no name of a query begins with, so that what is added to it is never taken for a part of it. */
export function freshPrefix({ find, in: bindings, where, rules }: ParsedQuery): string {
  const names = symbolNames([...find, ...(bindings ?? []), ...where, ...(rules ?? [])]);
  let prefix = 'kept';
  while (names.some((name) => name.startsWith(prefix) || name.startsWith(`?${prefix}`))) prefix += '-';
  return prefix;
}

/** A query that the database answers as if it held the SSOT's documents, with the arguments that it needs beside the reviewer's own. */
export interface RewrittenQuery {
  readonly in: readonly EdnValue[];
  readonly where: Clauses;
  readonly rules: readonly EdnValue[];
  readonly args: readonly EdnValue[];
}

/** What a query is rewritten with. */
export interface RewriteSources {
  readonly values: FoldedValues;
  /** Variables that stand for contents and of which nothing but their equality matters: their hash is bound instead. */
  readonly hashed: ReadonlySet<string>;
  /** Contents of more than one chunk, by object, of those that a term of the query can stand for. */
  readonly longContents: (entity: EdnValue) => Promise<readonly FoldedRow[]>;
}
