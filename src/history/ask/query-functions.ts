/**
 * What a query of a reviewer may call: the short list of the node's front (decision H3), kept here as well because a node that someone else runs may
 * allow more. Pure functions of bounded work.
 */
const CLAUSE_FUNCTIONS: ReadonlySet<string> = new Set(
  [
    '= == != not= < <= > >= compare identical? not min max',
    '+ - * / inc dec quot rem mod long int double float',
    'any? boolean? coll? counted? double? empty? even? false? float? inst? int? integer? keyword? list? map? nat-int? neg? nil? number? odd?',
    'pos-int? pos? sequential? set? some? string? symbol? true? vector? zero?',
    'str subs name namespace keyword symbol boolean count',
    'assoc concat conj cons contains? dedupe disj dissoc distinct drop first get get-in keys last list nth not-empty rest second select-keys',
    'set sort take vals vec vector identity',
    'get-attr get-start-valid-time get-end-valid-time',
  ].flatMap((line) => line.split(' ')),
);

/** What may stand at the head of a list in `:find` and `:order-by`. */
const FIND_FUNCTIONS: ReadonlySet<string> = new Set('pull sum min max count count-distinct avg median variance stddev distinct'.split(' '));

/** What joins clauses. */
const JOINS: ReadonlySet<string> = new Set(['not', 'or', 'and', 'not-join', 'or-join']);

/** Where a list stands in a query. */
export type Position = 'find' | 'clause' | 'call';

const ALLOWED: Readonly<Record<Position, ReadonlySet<string>>> = { find: FIND_FUNCTIONS, clause: JOINS, call: CLAUSE_FUNCTIONS };

/** Whether a name may stand at the head of a list there. Names with a namespace never may: resolving one loads code. */
export function isAllowed(name: string, position: Position): boolean {
  return ALLOWED[position].has(name);
}

/** The names that may stand there, for messages. */
export function allowedNames(position: Position): string {
  return [...ALLOWED[position]].join(' ');
}
