import { EdnError } from '../../edn/errors.js';
import { parse } from '../../edn/parse.js';
import { EdnList, EdnMap, EdnSet, EdnSymbol, EdnTagged, type EdnValue, Keyword, kw } from '../../edn/values.js';
import { HistoryError } from '../../history/rebuild/history-error.js';

/**
 * The functions that a reviewer's query may call: pure functions with bounded work. The node's
 * front has the same list (decision H3). The client checks it as well, because another node may
 * allow more.
 */
const CLAUSE_FUNCTIONS: ReadonlySet<string> = new Set(
  [
    '= == != not= < <= > >= compare identical? not min max',
    '+ - * / inc dec quot rem mod long int double float',
    'any? boolean? coll? counted? double? empty? even? false? float? inst? int? integer? keyword? list? map?',
    'nat-int? neg? nil? number? odd?',
    'pos-int? pos? sequential? set? some? string? symbol? true? vector? zero?',
    'str subs name namespace keyword symbol boolean count',
    'assoc concat conj cons contains? dedupe disj dissoc distinct drop first get get-in keys last list nth',
    'not-empty rest second select-keys',
    'set sort take vals vec vector identity',
    'get-attr get-start-valid-time get-end-valid-time',
  ].flatMap((line) => line.split(' ')),
);

/** The names that may begin a list in `:find` and `:order-by`. */
const FIND_FUNCTIONS: ReadonlySet<string> = new Set(
  'pull sum min max count count-distinct avg median variance stddev distinct'.split(' '),
);

/** The names of clauses that contain other clauses. */
const JOINS: ReadonlySet<string> = new Set(['not', 'or', 'and', 'not-join', 'or-join']);

/**
 * The names that may begin a list, by the list's place in a query. A name with a namespace is never
 * allowed, because resolving it loads code.
 */
const ALLOWED = { find: FIND_FUNCTIONS, clause: JOINS, call: CLAUSE_FUNCTIONS } as const;
type Position = keyof typeof ALLOWED;

/** A reviewer's query as checked data. It calls only listed functions. */
export interface ParsedQuery {
  readonly find: readonly EdnValue[];
  readonly in: readonly EdnValue[] | undefined;
  readonly where: readonly EdnValue[];
  readonly rules: readonly EdnValue[] | undefined;
  readonly orderBy: readonly (readonly [EdnValue, 'asc' | 'desc'])[] | undefined;
  readonly limit: number | undefined;
  readonly offset: number | undefined;
}

/** Maximum length of a query text, in characters. */
const LONGEST = 20_000;
const KEYS = ['find', 'in', 'where', 'rules', 'order-by', 'limit', 'offset'] as const;
type Key = (typeof KEYS)[number];

const malformed = (why: string, cause?: unknown): HistoryError =>
  new HistoryError(
    'malformed-query',
    `the query cannot be read: ${why}. Write it as {:find [?e] :where [[?e :type "file"]]} or [:find ?e :where ` +
      '[?e :type "file"]]',
    cause === undefined ? {} : { cause },
  );

function refused(name: string, position: Position): HistoryError {
  return new HistoryError(
    'query-refused',
    `the query calls ${JSON.stringify(name)}, which is not allowed; allowed there: ${[...ALLOWED[position]].join(' ')}`,
  );
}

/** Splits a query in vector form into its parts. Each keyword begins a part. */
function partsOfVector(items: readonly EdnValue[]): ReadonlyMap<string, readonly EdnValue[]> {
  const parts = new Map<string, EdnValue[]>();
  let part: EdnValue[] | undefined;
  for (const item of items) {
    if (item instanceof Keyword) {
      if (parts.has(item.name)) throw malformed(`:${item.name} occurs twice`);
      part = [];
      parts.set(item.name, part);
    } else if (part === undefined) throw malformed('it does not begin with :find');
    else part.push(item);
  }
  return parts;
}

function partsOf(form: EdnValue): ReadonlyMap<string, EdnValue> {
  if (form instanceof EdnMap) {
    const parts = new Map<string, EdnValue>();
    for (let i = 0; i < form.flat.length; i += 2) {
      const key = form.flat[i];
      if (!(key instanceof Keyword)) throw malformed('the keys of its map are keywords');
      parts.set(key.name, form.flat[i + 1] ?? null);
    }
    return parts;
  }
  if (!Array.isArray(form)) throw malformed('it is neither a map nor a vector');
  const single = new Set<string>(['limit', 'offset']);
  return new Map(
    [...partsOfVector(form)].map(([key, items]): [string, EdnValue] => [
      key,
      single.has(key) ? (items[0] ?? null) : items,
    ]),
  );
}

/** Checks the name that begins each list. Only such a name can call a function. */
function checkCalls(value: EdnValue, position: Position, rules: ReadonlySet<string>): void {
  if (value instanceof EdnList) {
    const [head, ...rest] = value.items;
    if (!(head instanceof EdnSymbol)) throw malformed('a list must begin with the name of the function that it calls');
    const isRule = position === 'clause' && rules.has(head.name);
    if (!isRule && !ALLOWED[position].has(head.name)) throw refused(head.name, position);
    // A pull pattern names attributes and calls nothing.
    if (head.name === 'pull') return;
    for (const part of rest) checkCalls(part, isRule ? 'call' : position, rules);
    return;
  }
  if (Array.isArray(value)) {
    const inside = position === 'clause' ? 'call' : position;
    for (const part of value) checkCalls(part, inside, rules);
  } else if (value instanceof EdnMap) {
    for (const part of value.flat) checkCalls(part, position, rules);
  } else if (value instanceof EdnSet) {
    for (const part of value.items) checkCalls(part, position, rules);
  } else if (value instanceof EdnTagged) checkCalls(value.value, position, rules);
}

function ruleNames(rules: readonly EdnValue[]): ReadonlySet<string> {
  return new Set(
    rules.map((rule) => {
      const head = Array.isArray(rule) ? (rule as readonly EdnValue[])[0] : undefined;
      const name = head instanceof EdnList ? head.items[0] : undefined;
      if (!(name instanceof EdnSymbol) || name.name.includes('/'))
        throw malformed('a rule must be a vector that begins with its head, such as (name ?a)');
      return name.name;
    }),
  );
}

function vector(parts: ReadonlyMap<string, EdnValue>, key: Key): readonly EdnValue[] | undefined {
  const value = parts.get(key);
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw malformed(`:${key} must be a vector`);
  return value as readonly EdnValue[];
}

function count(parts: ReadonlyMap<string, EdnValue>, key: Key): number | undefined {
  const value = parts.get(key);
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
    throw malformed(`:${key} must be a whole number of at least 0`);
  return value;
}

function directions(parts: ReadonlyMap<string, EdnValue>): ParsedQuery['orderBy'] {
  return vector(parts, 'order-by')?.map((entry) => {
    const [element, direction = kw('asc'), ...more] = Array.isArray(entry) ? (entry as readonly EdnValue[]) : [];
    const name = direction instanceof Keyword ? direction.name : undefined;
    if (element === undefined || more.length > 0 || (name !== 'asc' && name !== 'desc'))
      throw malformed(':order-by must be a vector of [?x :asc] and [?x :desc]');
    return [element, name];
  });
}

function read(text: string): EdnValue {
  if (text.length > LONGEST) throw malformed(`it has ${text.length} characters, which is more than ${LONGEST}`);
  try {
    return parse(text);
  } catch (cause) {
    if (cause instanceof EdnError) throw malformed(cause.message.replace(/\.$/, ''), cause);
    throw cause;
  }
}

/**
 * Parses a Datalog query from EDN text and checks it before it is sent. Refuses unknown parts and
 * functions that are not listed.
 *
 * @throws {HistoryError} `malformed-query`, `query-refused`
 */
export function parseQuery(text: string): ParsedQuery {
  const parts = partsOf(read(text));
  const unknown = [...parts.keys()].find((key) => !(KEYS as readonly string[]).includes(key));
  if (unknown !== undefined)
    throw malformed(`it has a part :${unknown}, but only ${KEYS.map((key) => `:${key}`).join(' ')} are allowed`);
  const find = vector(parts, 'find');
  const where = vector(parts, 'where');
  if (find === undefined || find.length === 0) throw malformed('it has no :find');
  if (where === undefined || where.length === 0) throw malformed('it has no :where');
  const [rules, orderBy] = [vector(parts, 'rules'), directions(parts)];
  const names = ruleNames(rules ?? []);
  for (const element of [...find, ...(orderBy ?? []).map(([ordered]) => ordered)]) checkCalls(element, 'find', names);
  const clauses = [...where, ...(rules ?? []).flatMap((rule) => (rule as readonly EdnValue[]).slice(1))];
  for (const clause of clauses) checkCalls(clause, 'clause', names);
  return {
    find,
    in: vector(parts, 'in'),
    where,
    rules,
    orderBy,
    limit: count(parts, 'limit'),
    offset: count(parts, 'offset'),
  };
}

/** Returns the names of a query's columns as written. */
export function columnNames({ find }: ParsedQuery): readonly string[] {
  const nameOf = (value: EdnValue): string => {
    if (value instanceof EdnSymbol || value instanceof Keyword) return value.name;
    if (value instanceof EdnList)
      return value.items
        .filter((item) => !Array.isArray(item))
        .map(nameOf)
        .join(' ');
    return String(value);
  };
  return find.map(nameOf);
}
