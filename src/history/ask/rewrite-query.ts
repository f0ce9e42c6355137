import { EdnList, EdnMap, EdnSet, type EdnSymbol, type EdnValue, kw, sym } from '../../edn/values.js';
import { hashText } from '../../objects/hashes.js';
import { isObjectType } from '../../objects/object-type.js';
import { ownMember } from '../../values/own-member.js';
import { distinctRows } from '../../xtdb/datalog.js';
import { MAP_KEY, VALUE_KEY } from '../../xtdb/documents.js';
import { HistoryError } from '../rebuild/history-error.js';
import type { FoldedRow, FoldedValues } from './folded-values.js';
import type { ParsedQuery } from './parse-query.js';
import { call, constantsOf, isOpen, isVariable, symbolNames, tripleOf } from './query-terms.js';
import { attributeAsked, SSOT_ATTRIBUTES } from './ssot-attributes.js';

type Clause = EdnValue;
type Clauses = readonly Clause[];

/** What the places of a clause say. */
interface Triple {
  readonly e: EdnValue;
  readonly a: string;
  readonly v: EdnValue | undefined;
}

/**
 * Where a clause stands: on the top level, in a rule, of which nothing is known, or in a join or negation, where some variables or all have a value
 * when the clause is asked.
 */
type Scope = 'top' | 'rule' | 'all' | ReadonlySet<string>;

const NOTHING_BOUND: Scope = new Set();

const isBound = (scope: Scope, { name }: EdnSymbol): boolean => scope === 'all' || (typeof scope !== 'string' && scope.has(name));

/** A query that the database answers as if it held the SSOT's documents, with the arguments that it needs beside the reviewer's own. */
export interface RewrittenQuery {
  readonly in: readonly EdnValue[];
  readonly where: Clauses;
  readonly rules: readonly EdnValue[];
  readonly args: readonly EdnValue[];
}

/** UTF-16 units of the largest argument that the node takes, counted as it does: sixteen for each value beside its text. */
export const LARGEST_ARGUMENT = 16_777_216;
const UNITS_OF_A_VALUE = 16;

const ELLIPSIS = sym('...');

const triple = (e: EdnValue, a: string, v?: EdnValue): Clause => (v === undefined ? [e, kw(a)] : [e, kw(a), v]);
const anyOf = (values: readonly EdnValue[]): EdnValue => (values.length === 1 ? (values[0] ?? null) : new EdnSet(values));

function sizeOf(value: EdnValue): number {
  const own = UNITS_OF_A_VALUE + (typeof value === 'string' ? value.length : 0);
  if (Array.isArray(value)) return (value as readonly EdnValue[]).reduce<number>((sum, one) => sum + sizeOf(one), own);
  if (value instanceof EdnSet) return value.items.reduce<number>((sum, one) => sum + sizeOf(one), own);
  return value instanceof EdnMap ? value.flat.reduce<number>((sum, one) => sum + sizeOf(one), own) : own;
}

/** A constant as `args` has it in the database. */
function storedArgs(value: EdnValue): EdnValue {
  const [key] = value instanceof EdnMap && value.size === 1 ? value.flat : [];
  return key === MAP_KEY || key === VALUE_KEY ? new EdnMap([MAP_KEY, value]) : value;
}

/** The content's hash stands for it: they are equal together. */
const hashOf = (content: EdnValue): EdnValue => (typeof content === 'string' ? hashText(content) : content);

/** A prefix that no name of a query begins with, so that what is added to it is never taken for a part of it. */
function freshPrefix({ find, in: bindings, where, rules }: ParsedQuery): string {
  const names = symbolNames([...find, ...(bindings ?? []), ...where, ...(rules ?? [])]);
  let prefix = 'kept';
  while (names.some((name) => name.startsWith(prefix) || name.startsWith(`?${prefix}`))) prefix += '-';
  return prefix;
}

function grouped(rows: readonly FoldedRow[], by: 0 | 1): EdnMap {
  const groups = new Map<EdnValue, EdnValue[]>();
  for (const row of rows) {
    const group = groups.get(row[by]);
    if (group === undefined) groups.set(row[by], [row[1 - by] as EdnValue]);
    else group.push(row[1 - by] as EdnValue);
  }
  return new EdnMap([...groups].flat());
}

/** What a query is rewritten with. */
interface RewriteSources {
  readonly values: FoldedValues;
  /** Variables that stand for contents and of which nothing but their equality matters: their hash is bound instead. */
  readonly hashed: ReadonlySet<string>;
  /** Contents of more than one chunk, by object, of those that a term of the query can stand for. */
  readonly longContents: (entity: EdnValue) => Promise<readonly FoldedRow[]>;
}

class QueryRewriter {
  readonly #query: ParsedQuery;
  readonly #sources: RewriteSources;
  readonly #prefix: string;
  readonly #in: EdnSymbol[] = [];
  readonly #args: EdnValue[] = [];
  #owned = 0;

  constructor(query: ParsedQuery, sources: RewriteSources) {
    this.#query = query;
    this.#sources = sources;
    this.#prefix = freshPrefix(query);
  }

  async rewritten(): Promise<RewrittenQuery> {
    const { where, rules: own = [], in: bindings = [] } = this.#query;
    const rules: { readonly head: EdnList; readonly body: Clauses }[] = [];
    for (const [head, ...body] of own as readonly (readonly EdnValue[])[]) {
      rules.push({ head: head as EdnList, body: await this.#clauses(body, 'rule') });
    }
    const top = await this.#clauses(where, 'top');
    const handedOn = this.#argumentsIn(rules.flatMap(({ body }) => body));
    const names = new Set(rules.map(({ head }) => symbolNames(head.items)[0] ?? ''));
    const reached = (clause: Clause): Clause => this.#withArguments(clause, { names, handedOn });
    return {
      in: [...bindings, ...this.#in],
      where: top.map(reached),
      rules: rules.map(({ head, body }) => [withFirst(head, handedOn), ...body.map(reached)]),
      args: this.#args,
    };
  }

  /** A variable that no other clause has. */
  #own(name: string): EdnSymbol {
    this.#owned += 1;
    return sym(`?${this.#prefix}-${name}${this.#owned}`);
  }

  async #clauses(clauses: Clauses, scope: Scope): Promise<Clauses> {
    const rewritten: Clause[] = [];
    for (const clause of clauses) rewritten.push(...(await this.#clause(clause, scope)));
    return rewritten;
  }

  async #clause(clause: Clause, scope: Scope): Promise<Clauses> {
    if (clause instanceof EdnList) return [await this.#join(clause, scope)];
    const found = tripleOf(clause);
    if (found !== undefined) return this.#triple({ ...found, a: attributeAsked(found.a) }, scope);
    const [called] = Array.isArray(clause) ? (clause as readonly EdnValue[]) : [];
    if (called instanceof EdnList && symbolNames(called.items)[0] === 'get-attr') {
      const way = 'write a clause such as [?e :tool ?t], or ask with --storage (storage=true over HTTP)';
      throw new HistoryError('query-refused', `get-attr reads what the database holds, not the documents of sessions: ${way}`);
    }
    return [clause];
  }

  async #join(clause: EdnList, scope: Scope): Promise<Clause> {
    const [name = ''] = symbolNames(clause.items.slice(0, 1));
    const rest = clause.items.slice(1);
    if (name === 'and') return call(name, ...(await this.#clauses(rest, scope)));
    if (name === 'not') return call(name, ...(await this.#clauses(rest, scope === 'rule' ? scope : 'all')));
    if (name === 'not-join' || name === 'or-join') {
      const [terms = []] = rest;
      const inner = this.#scopeOf(scope, symbolNames([terms]));
      const parts = rest.slice(1);
      return call(name, terms, ...(name === 'or-join' ? await this.#branches(parts, inner) : await this.#clauses(parts, inner)));
    }
    if (name !== 'or') return clause;
    return call(name, ...(await this.#branches(rest, scope === 'top' ? this.#boundOnTop() : scope)));
  }

  /** Each branch of a disjunction is one clause. */
  async #branches(branches: Clauses, scope: Scope): Promise<Clauses> {
    const rewritten: Clause[] = [];
    for (const branch of branches) {
      const clauses = await this.#clause(branch, scope);
      rewritten.push(clauses.length === 1 ? (clauses[0] ?? null) : call('and', ...clauses));
    }
    return rewritten;
  }

  #scopeOf(scope: Scope, terms: readonly string[]): Scope {
    if (scope === 'rule') return scope;
    const outer = scope === 'top' ? this.#boundOnTop() : scope;
    return new Set(outer === 'all' ? terms : terms.filter((name) => outer.has(name)));
  }

  /** Variables that have a value before anything inside a join is asked. */
  #boundOnTop(): ReadonlySet<string> {
    const { in: bindings = [], where } = this.#query;
    const kept: ReadonlySet<string | undefined> = new Set(['direct', 'shared', 'folded']);
    const terms = where.flatMap((clause) => {
      const found = tripleOf(clause);
      return found !== undefined && kept.has(ownMember(SSOT_ATTRIBUTES, attributeAsked(found.a))) ? [found.e, found.v ?? null] : [];
    });
    return new Set(symbolNames([...bindings, ...terms]));
  }

  #triple(asked: Triple, scope: Scope): Clauses | Promise<Clauses> {
    const { e, a, v } = asked;
    const kept = ownMember(SSOT_ATTRIBUTES, a);
    if (kept === 'folded') return this.#folded(asked, scope);
    if (kept === 'shared') return this.#shared(asked, scope);
    if (kept === 'direct') return [triple(e, a, v)];
    // Every document has a content; the other attributes are there as in the SSOT's documents whatever their values are stored as.
    if (isOpen(v)) return [triple(e, a === 'content' ? 'identity_hash' : a)];
    if (kept === 'running') return this.#running(asked, scope);
    const constants = constantsOf(v);
    if (kept === 'text') return this.#content(asked, scope);
    if (kept === 'list') return this.#listed(asked, scope);
    return constants === undefined ? this.#mapped(asked, scope) : [triple(e, a, anyOf(constants.map(storedArgs)))];
  }

  /** Parts have the attribute too: only objects have an identity. */
  #shared({ e, a, v }: Triple, scope: Scope): Clauses {
    if (a === 'xt/id' && isOpen(v)) return [triple(e, 'identity_hash')];
    const types = a === 'type' ? constantsOf(v) : undefined;
    if (types?.every(isObjectType)) return [triple(e, a, v)];
    if (isVariable(e) || typeof e === 'string') return [triple(e, a, v), triple(e, 'identity_hash')];
    const own = this.#own('e');
    const chosen = isOpen(e) ? [] : [[call('==', own, e)]];
    return this.#asked([v], [[triple(own, a, v), triple(own, 'identity_hash'), ...chosen]], scope);
  }

  async #content({ e, a, v }: Triple, scope: Scope): Promise<Clauses> {
    const constants = constantsOf(v);
    if (constants !== undefined) return [triple(e, 'content_hash', anyOf(constants.map(hashOf)))];
    if (isVariable(v) && this.#sources.hashed.has(v.name)) return [triple(e, 'content_hash', v)];
    const [hash, chunk] = [this.#own('hash'), this.#own('chunk')];
    const one = isOpen(e) ? this.#own('e') : e;
    const ofChunk = (...id: readonly EdnValue[]): Clauses => [
      triple(one, 'content_hash', hash),
      [call('str', ...id), chunk],
      triple(chunk, 'type', 'chunk'),
      triple(chunk, 'text', v),
    ];
    const legs = [[triple(one, a, v)], ofChunk('chunk:', hash, '~'), ofChunk('chunk:', hash)];
    const long = await this.#sources.longContents(e ?? null);
    return this.#asked([e, v], long.length === 0 ? legs : [...legs, await this.#folded({ e: one, a, v }, NOTHING_BOUND, long)], scope);
  }

  #mapped({ e, a, v = null }: Triple, scope: Scope): Clauses {
    const [kept, keys] = [this.#own('map'), this.#own('keys')];
    const one = isOpen(e) ? this.#own('e') : e;
    // The value may stand for what is no map elsewhere in the query: only what the attribute holds has keys.
    const plain = [triple(one, a, v), triple(one, a, kept), [call('keys', kept), keys], [call('not=', keys, [MAP_KEY])]];
    const wrapped = [triple(one, a, kept), [call('keys', kept), keys], [call('=', keys, [MAP_KEY])], [call('get', kept, MAP_KEY), v]];
    return this.#asked([e, v], [plain, wrapped], scope);
  }

  #listed({ e, a, v = null }: Triple, scope: Scope): Clauses {
    const [kept, member] = [this.#own('map'), this.#own('member')];
    const one = isOpen(e) ? this.#own('e') : e;
    const constants = constantsOf(v);
    const value = constants === undefined ? v : member;
    const chosen = constants === undefined ? [] : [[call('==', member, anyOf(constants))]];
    return this.#asked([e, v], [[triple(one, a, kept), [call('get', kept, VALUE_KEY), [value, ELLIPSIS]], ...chosen]], scope);
  }

  async #running({ e, a, v }: Triple, scope: Scope): Promise<Clauses> {
    const ids = await this.#sources.values.runningIds(a);
    if (ids.length === 0) return [triple(e, a, v)];
    const constants = constantsOf(e);
    const runs = (id: EdnValue): boolean => ids.some((one) => one === id);
    if (constants !== undefined && !constants.some(runs)) return [triple(e, a, v)];
    const rows = await this.#sources.values.runningRows(ids, a);
    if (constants?.every(runs)) return this.#folded({ e, a, v }, scope, rows);
    const one = isOpen(e) ? this.#own('e') : e;
    const [all, is] = [this.#argument(new EdnSet(ids)), this.#own('runs')];
    const own = isVariable(one) ? one : this.#own('e');
    const chosen = own === one ? [] : [[call('==', own, e)]];
    const rest = [triple(own, a, v), ...chosen, [call('contains?', all, own), is], [call('false?', is)]];
    const folded = await this.#folded({ e: one, a, v }, NOTHING_BOUND, rows);
    return this.#asked([e, v], [rest, folded], scope);
  }

  /** A clause whose rows are known: they are an argument, in the form that is looked up fastest where the clause stands. */
  async #folded({ e, a, v }: Triple, scope: Scope, known?: readonly FoldedRow[]): Promise<Clauses> {
    const rows = matching(known ?? (await this.#sources.values.rows(a, e)), e, v);
    const [first, second] = [isVariable(e) ? e : undefined, isVariable(v) ? v : undefined];
    if (first === undefined && second === undefined) return [[call(rows.length > 0 ? 'true?' : 'false?', true)]];
    const isOne = first === undefined || second === undefined || first.name === second.name;
    if (isOne) {
      const variable = (first ?? second) as EdnSymbol;
      const column = first === undefined ? 1 : 0;
      const same = first !== undefined && second !== undefined ? rows.filter(([id, value]) => id === value) : rows;
      const values = distinctRows(same.map((row) => [row[column]])).map(([value]) => value ?? null);
      if (isBound(scope, variable)) return [[call('contains?', this.#argument(new EdnSet(values)), variable)]];
      return this.#listing([variable], [call('identity', this.#argument(values)), [variable, ELLIPSIS]], scope);
    }
    const [entity, value] = [first as EdnSymbol, second as EdnSymbol];
    // Turns are maps, and forks share them: they are no keys.
    const isPlain = rows.every(([, one]) => typeof one !== 'object');
    if (!isPlain || (!isBound(scope, entity) && !isBound(scope, value)))
      return this.#listing([entity, value], [call('identity', this.#argument(rows)), [[entity, value]]], scope);
    if (!isBound(scope, entity)) return [[call('get', this.#argument(grouped(rows, 1)), value), [entity, ELLIPSIS]]];
    if (!isBound(scope, value)) return [[call('get', this.#argument(grouped(rows, 0)), entity), [value, ELLIPSIS]]];
    const [pairs, pair] = [this.#argument(new EdnSet(rows)), this.#own('pair')];
    return this.#asked([entity, value], [[[call('vector', entity, value), pair], [call('contains?', pairs, pair)]]], scope);
  }

  /** In a rule, which the database writes out where it is called, a variable that a call binds would depend on itself. */
  #listing(terms: readonly EdnSymbol[], clause: Clause, scope: Scope): Clauses {
    return scope === 'rule' ? this.#asked(terms, [[clause]], scope) : [clause];
  }

  /**
   * Clauses with variables of their own, which no other clause sees: inside a join or a rule a clause of several legs. On the top level one leg stands as it
   * is, since the database joins it with the rest.
   */
  #asked(terms: readonly (EdnValue | undefined)[], legs: readonly Clauses[], scope: Scope): Clauses {
    const [only = [], ...others] = legs;
    if (scope === 'top' && others.length === 0) return only;
    const variables = [...new Map(terms.filter(isVariable).map((variable) => [variable.name, variable])).values()];
    const all = [...this.#argumentsIn(legs.flat()), ...variables];
    return [
      call(
        'or-join',
        all.length === 0 ? [this.#argument(true)] : all,
        ...legs.map((leg) => (leg.length === 1 ? (leg[0] ?? null) : call('and', ...leg))),
      ),
    ];
  }

  #argument(value: EdnValue): EdnSymbol {
    if (sizeOf(value) > LARGEST_ARGUMENT) {
      const why = `the chats and sessions that the query reaches say more than ${LARGEST_ARGUMENT} characters of one attribute`;
      throw new HistoryError('query-too-wide', `${why}: name those that are meant, as in [?s :session_id "S"], or through :in and --args`);
    }
    const variable = sym(`?${this.#prefix}${this.#in.length}`);
    this.#in.push(variable);
    this.#args.push(value);
    return variable;
  }

  #argumentsIn(clauses: Clauses): readonly EdnSymbol[] {
    const names = new Set(symbolNames(clauses));
    return this.#in.filter(({ name }) => names.has(name));
  }

  /** A clause that hands on what the clauses inside it, and the rules that it calls, are asked with. */
  #withArguments(clause: Clause, rules: { readonly names: ReadonlySet<string>; readonly handedOn: readonly EdnSymbol[] }): Clause {
    if (!(clause instanceof EdnList)) return clause;
    const [head = null, ...rest] = clause.items;
    const [name = ''] = symbolNames([head]);
    if (rules.names.has(name)) return withFirst(clause, rules.handedOn);
    if (name === 'not' || name === 'or' || name === 'and') return call(name, ...rest.map((part) => this.#withArguments(part, rules)));
    if (name !== 'not-join' && name !== 'or-join') return clause;
    const [terms = [], ...parts] = rest;
    const inside = parts.map((part) => this.#withArguments(part, rules));
    const there = symbolNames([terms]);
    const more = this.#argumentsIn(inside).filter((argument) => !there.includes(argument.name));
    return call(name, prepended(terms as readonly EdnValue[], more), ...inside);
  }
}

/** Terms with more before them; where the first ones stand in a vector, which says that they have a value, in that vector. */
function prepended(terms: readonly EdnValue[], more: readonly EdnValue[]): readonly EdnValue[] {
  const [first, ...rest] = terms;
  return Array.isArray(first) ? [[...more, ...(first as readonly EdnValue[])], ...rest] : [...more, ...terms];
}

/** A call or head of a rule with more terms before its own. */
function withFirst({ items }: EdnList, more: readonly EdnValue[]): EdnList {
  const [name = null, ...terms] = items;
  return new EdnList([name, ...prepended(terms, more)]);
}

/** The rows that the constants of a clause allow. */
function matching(rows: readonly FoldedRow[], e: EdnValue, v: EdnValue | undefined): readonly FoldedRow[] {
  const [ids, values] = [constantsOf(e), constantsOf(v)];
  const isSame = (one: EdnValue, other: EdnValue): boolean => one === other || distinctRows([[one], [other]]).length === 1;
  return rows.filter(
    ([id, value]) => (ids === undefined || ids.includes(id)) && (values === undefined || values.some((one) => isSame(one, value))),
  );
}

/**
 * Rewrites a reviewer's query over the SSOT's documents into one over what the database holds (decision G11): what is folded is passed as arguments, what
 * is stored in another form is asked through clauses that do, and no part shows through.
 * @throws {HistoryError} `query-refused`, `query-too-wide`, `query-timeout`
 */
export function rewriteQuery(query: ParsedQuery, sources: RewriteSources): Promise<RewrittenQuery> {
  return new QueryRewriter(query, sources).rewritten();
}
