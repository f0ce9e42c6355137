import { EdnMap, EdnSet, type EdnSymbol, type EdnValue, kw, sym } from '../../edn/values.js';
import { hashText } from '../../objects/hashes.js';
import { MAP_KEY, VALUE_KEY } from '../../xtdb/documents.js';
import type { FoldedRow, FoldedValues } from './folded-values.js';
import type { ParsedQuery } from './parse-query.js';
import { symbolNames } from './query-terms.js';

/** One clause of a query. */
export type Clause = EdnValue;
/** Clauses that must all match. */
export type Clauses = readonly Clause[];

/** The terms of a clause. */
export interface Triple {
  readonly e: EdnValue;
  readonly a: string;
  readonly v: EdnValue | undefined;
}

/**
 * The scope of a clause: the top level, a rule, or a join or negation. In a rule, it is unknown
 * which variables have a value. In a join or negation, all or the named variables have one.
 */
export type Scope = 'top' | 'rule' | 'all' | ReadonlySet<string>;

/** The scope in which no variable has a value yet. */
export const NOTHING_BOUND: Scope = new Set();

/** Returns whether a variable has a value in a scope. */
export const isBound = (scope: Scope, { name }: EdnSymbol): boolean =>
  scope === 'all' || (typeof scope !== 'string' && scope.has(name));

/** The symbol that follows a variable in a binding of many values. */
export const ELLIPSIS = sym('...');
/** The result of a look-up for an entity without the attribute. No attribute has it as a value. */
export const ABSENT = kw('absent');

/** Builds a triple. Without a value it requires only that the entity has the attribute. */
export const triple = (e: EdnValue, a: string, v?: EdnValue): Clause => (v === undefined ? [e, kw(a)] : [e, kw(a), v]);
/** Builds a constant that matches any of some values. */
export const anyOf = (values: readonly EdnValue[]): EdnValue =>
  values.length === 1 ? (values[0] ?? null) : new EdnSet(values);

/** Converts a constant to the form in which the database stores `args`. */
export function storedArgs(value: EdnValue): EdnValue {
  const [key] = value instanceof EdnMap && value.size === 1 ? value.flat : [];
  return key === MAP_KEY || key === VALUE_KEY ? new EdnMap([MAP_KEY, value]) : value;
}

/** Replaces a content by its hash. Equal contents have equal hashes. */
export const hashOf = (content: EdnValue): EdnValue => (typeof content === 'string' ? hashText(content) : content);

/** Returns a prefix that no name of the query begins with, so that added names never clash. */
export function freshPrefix({ find, in: bindings, where, rules }: ParsedQuery): string {
  const names = symbolNames([...find, ...(bindings ?? []), ...where, ...(rules ?? [])]);
  let prefix = 'kept';
  while (names.some((name) => name.startsWith(prefix) || name.startsWith(`?${prefix}`))) prefix += '-';
  return prefix;
}

/**
 * A query over the stored documents with the same answer as the reviewer's query over the SSOT's
 * documents. It includes arguments that the rewrite added.
 */
export interface RewrittenQuery {
  readonly in: readonly EdnValue[];
  readonly where: Clauses;
  readonly rules: readonly EdnValue[];
  readonly args: readonly EdnValue[];
}

/** The sources of a rewrite. */
export interface RewriteSources {
  readonly values: FoldedValues;
  /**
   * Content variables that are only compared for equality. The rewritten query binds their hashes.
   */
  readonly hashed: ReadonlySet<string>;
  /**
   * Returns the contents longer than one chunk of the objects that a term of the query can match.
   */
  readonly longContents: (entity: EdnValue) => Promise<readonly FoldedRow[]>;
}
