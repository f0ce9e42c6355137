import { EdnList, EdnMap, EdnSet, type EdnSymbol, type EdnValue, kw, sym } from '../../edn/values.js';
import { HistoryError } from '../../history/rebuild/history-error.js';
import { isObjectType } from '../../objects/object-type.js';
import { ownMember } from '../../values/own-member.js';
import { distinctRows } from '../../xtdb/datalog.js';
import { MAP_KEY, VALUE_KEY } from '../../xtdb/documents.js';
import { grouped, isPlain, LARGEST_ARGUMENT, matching, sizeOf } from './folded-rows.js';
import type { FoldedRow } from './folded-values.js';
import type { ParsedQuery } from './parse-query.js';
import { call, constantsOf, isOpen, isVariable, prepended, symbolNames, tripleOf, withFirst } from './query-terms.js';
import {
  ABSENT,
  anyOf,
  type Clause,
  type Clauses,
  ELLIPSIS,
  freshPrefix,
  hashOf,
  isBound,
  NOTHING_BOUND,
  type RewriteSources,
  type RewrittenQuery,
  type Scope,
  storedArgs,
  type Triple,
  triple,
} from './rewritten-terms.js';
import { attributeAsked, SSOT_ATTRIBUTES } from './ssot-attributes.js';
import { VariablePlaces } from './variable-places.js';

class QueryRewriter {
  readonly #query: ParsedQuery;
  readonly #sources: RewriteSources;
  readonly #prefix: string;
  readonly #places: VariablePlaces;
  readonly #in: EdnSymbol[] = [];
  readonly #args: EdnValue[] = [];
  #owned = 0;

  constructor(query: ParsedQuery, sources: RewriteSources) {
    this.#query = query;
    this.#sources = sources;
    this.#prefix = freshPrefix(query);
    this.#places = new VariablePlaces(query);
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
    if (clause instanceof EdnList) return (await this.#lacking(clause, scope)) ?? [await this.#join(clause, scope)];
    const found = tripleOf(clause);
    if (found !== undefined) return this.#triple({ ...found, a: attributeAsked(found.a) }, scope);
    const [called] = Array.isArray(clause) ? (clause as readonly EdnValue[]) : [];
    if (called instanceof EdnList && symbolNames(called.items)[0] === 'get-attr') {
      const way = 'write a clause such as [?e :tool ?t], or ask with --storage (storage=true over HTTP)';
      throw new HistoryError(
        'query-refused',
        `get-attr reads stored attributes, not the documents of sessions: ${way}`,
      );
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
      return call(
        name,
        terms,
        ...(name === 'or-join' ? await this.#branches(parts, inner) : await this.#clauses(parts, inner)),
      );
    }
    if (name !== 'or') return clause;
    return call(name, ...(await this.#branches(rest, scope === 'top' ? this.#boundOnTop() : scope)));
  }

  /**
   * Rewrites a `not` of one clause whose terms all have values into plain clauses. For a `not`, the
   * database would run a separate query for each entity. Returns undefined for any other clause.
   */
  async #lacking({ items: [head = null, inner = null, ...more] }: EdnList, scope: Scope): Promise<Clauses | undefined> {
    const found = tripleOf(inner);
    const isSingle = scope === 'top' && symbolNames([head])[0] === 'not' && more.length === 0;
    if (!isSingle || found === undefined || !isVariable(found.e)) return undefined;
    const { e, v } = found;
    const a = attributeAsked(found.a);
    if (ownMember(SSOT_ATTRIBUTES, a) === 'direct' && !isVariable(v)) {
      const [value, constants] = [this.#own('value'), constantsOf(v)];
      const unlike = constants === undefined ? call('==', value, ABSENT) : call('!=', value, anyOf(constants));
      return [[call('get-attr', e, kw(a), ABSENT), [value, ELLIPSIS]], [unlike]];
    }
    const isFolded = ownMember(SSOT_ATTRIBUTES, a) === 'folded' && isVariable(v) && v.name !== e.name;
    const rows = isFolded ? await this.#sources.values.rows(a, e) : undefined;
    if (rows === undefined || !isPlain(rows)) return undefined;
    const [pair, is] = [this.#own('pair'), this.#own('is')];
    return [
      [call('vector', e, v ?? null), pair],
      [call('contains?', this.#argument(new EdnSet(rows)), pair), is],
      [call('false?', is)],
    ];
  }

  /**
   * Rewrites a clause about an attribute that heads store unchanged. For the members of a list it
   * uses `get-attr`, because for a triple the database would unfold every list for each entity. For
   * files joined by a hash, `any?` makes the database read the file last.
   */
  #plain({ e, a, v }: Triple, scope: Scope): Clauses {
    if (scope !== 'top' || !isVariable(e)) return [triple(e, a, v)];
    if (this.#places.isJoinedFile(e, a, v)) return [triple(e, a, v), [call('any?', e)]];
    if (!this.#places.isMember(e)) return [triple(e, a, v)];
    const isOwn = !isVariable(v) || v.name === e.name || this.#places.isBoundElsewhere(v, e, a);
    const value = isOwn ? this.#own('value') : v;
    const constants = constantsOf(v);
    const other = constants === undefined ? v : anyOf(constants);
    const chosen = !isOwn || isOpen(v) || other === undefined ? [] : [[call('==', value, other)]];
    // `get-attr` cannot look up the id.
    const found = a === 'xt/id' ? [call('identity', e), value] : [call('get-attr', e, kw(a)), [value, ELLIPSIS]];
    return [found, ...chosen];
  }

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

  /** Returns the variables that have a value before the clauses inside a join run. */
  #boundOnTop(): ReadonlySet<string> {
    const { in: bindings = [], where } = this.#query;
    const kept: ReadonlySet<string | undefined> = new Set(['direct', 'shared', 'folded']);
    const terms = where.flatMap((clause) => {
      const found = tripleOf(clause);
      return found !== undefined && kept.has(ownMember(SSOT_ATTRIBUTES, attributeAsked(found.a)))
        ? [found.e, found.v ?? null]
        : [];
    });
    return new Set(symbolNames([...bindings, ...terms]));
  }

  #triple(asked: Triple, scope: Scope): Clauses | Promise<Clauses> {
    const { e, a, v } = asked;
    const kept = ownMember(SSOT_ATTRIBUTES, a);
    if (kept === 'folded') return this.#folded(asked, scope);
    if (kept === 'shared') return this.#shared(asked, scope);
    if (kept === 'direct') return this.#plain(asked, scope);
    // Without a value, a clause only tests that the attribute exists. Every object has a content.
    if (isOpen(v)) return this.#plain({ e, a: a === 'content' ? 'identity_hash' : a, v: undefined }, scope);
    if (kept === 'running') return this.#running(asked, scope);
    const constants = constantsOf(v);
    if (kept === 'text') return this.#content(asked, scope);
    if (kept === 'list') return this.#listed(asked, scope);
    return constants === undefined ? this.#mapped(asked, scope) : [triple(e, a, anyOf(constants.map(storedArgs)))];
  }

  /**
   * Rewrites a clause about an attribute that parts also have. Only objects have an identity hash.
   */
  #shared({ e, a, v }: Triple, scope: Scope): Clauses {
    const isObject: Triple = { e, a: 'identity_hash', v: undefined };
    if (a === 'xt/id' && isOpen(v)) return this.#plain(isObject, scope);
    const types = a === 'type' ? constantsOf(v) : undefined;
    if (types?.every(isObjectType)) return this.#plain({ e, a, v }, scope);
    if (isVariable(e) || typeof e === 'string')
      return [...this.#plain({ e, a, v }, scope), ...this.#plain(isObject, scope)];
    const own = this.#own('e');
    const chosen = isOpen(e) ? [] : [[call('==', own, e)]];
    return this.#asked([v], [[triple(own, a, v), triple(own, 'identity_hash'), ...chosen]], scope);
  }

  async #content({ e, a, v }: Triple, scope: Scope): Promise<Clauses> {
    const constants = constantsOf(v);
    const ofHash = (value: EdnValue): Clauses => this.#plain({ e, a: 'content_hash', v: value }, scope);
    if (constants !== undefined) return ofHash(anyOf(constants.map(hashOf)));
    if (isVariable(v) && this.#sources.hashed.has(v.name)) return ofHash(v);
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
    return this.#asked(
      [e, v],
      long.length === 0 ? legs : [...legs, await this.#folded({ e: one, a, v }, NOTHING_BOUND, long)],
      scope,
    );
  }

  #mapped({ e, a, v = null }: Triple, scope: Scope): Clauses {
    const [kept, keys] = [this.#own('map'), this.#own('keys')];
    const one = isOpen(e) ? this.#own('e') : e;
    // Tests `kept`, because `v` may also have values that are not maps.
    const plain = [
      triple(one, a, v),
      triple(one, a, kept),
      [call('keys', kept), keys],
      [call('not=', keys, [MAP_KEY])],
    ];
    const wrapped = [
      triple(one, a, kept),
      [call('keys', kept), keys],
      [call('=', keys, [MAP_KEY])],
      [call('get', kept, MAP_KEY), v],
    ];
    return this.#asked([e, v], [plain, wrapped], scope);
  }

  #listed({ e, a, v = null }: Triple, scope: Scope): Clauses {
    const [kept, member] = [this.#own('map'), this.#own('member')];
    const one = isOpen(e) ? this.#own('e') : e;
    const constants = constantsOf(v);
    const value = constants === undefined ? v : member;
    const chosen = constants === undefined ? [] : [[call('==', member, anyOf(constants))]];
    const leg = [triple(one, a, kept), [call('get', kept, VALUE_KEY), [value, ELLIPSIS]], ...chosen];
    const isJoined = isVariable(one) && isVariable(v) && one.name !== v.name && this.#places.isBoundTwice(v);
    if (scope === 'top' && isJoined) return [triple(one, a), this.#relation(one, v, leg)];
    return this.#asked([e, v], [leg], scope);
  }

  /**
   * Builds the pairs of an entity and its list members once, before the join. Otherwise the
   * database unfolds the lists of all entities for each member that another clause yields.
   */
  #relation(e: EdnSymbol, v: EdnSymbol, leg: Clauses): Clause {
    const narrowing = this.#query.where.filter((clause) => {
      const found = tripleOf(clause);
      if (!isVariable(found?.e) || found.e.name !== e.name || constantsOf(found.v) === undefined) return false;
      return ownMember(SSOT_ATTRIBUTES, attributeAsked(found.a)) === 'direct';
    });
    // Only the argument is bound before the join, so the database finds all pairs in one query.
    return call('or-join', [[this.#argument(true)], e, v], call('and', ...narrowing, ...leg));
  }

  async #running({ e, a, v }: Triple, scope: Scope): Promise<Clauses> {
    const ids = await this.#sources.values.runningIds(a);
    if (ids.length === 0) return this.#plain({ e, a, v }, scope);
    const constants = constantsOf(e);
    const runs = (id: EdnValue): boolean => ids.some((one) => one === id);
    if (constants !== undefined && !constants.some(runs)) return [triple(e, a, v)];
    const rows = await this.#sources.values.runningRows(ids, a);
    if (scope === 'top' && isVariable(e) && isVariable(v) && v.name !== e.name && !this.#places.isBoundTwice(v)) {
      const stored = this.#own('stored');
      return [
        ...this.#plain({ e, a, v: stored }, scope),
        [call('get', this.#argument(new EdnMap(rows.flat())), e, stored), v],
      ];
    }
    if (constants?.every(runs)) return this.#folded({ e, a, v }, scope, rows);
    const one = isOpen(e) ? this.#own('e') : e;
    const [all, is] = [this.#argument(new EdnSet(ids)), this.#own('runs')];
    const own = isVariable(one) ? one : this.#own('e');
    const chosen = own === one ? [] : [[call('==', own, e)]];
    const rest = [triple(own, a, v), ...chosen, [call('contains?', all, own), is], [call('false?', is)]];
    const folded = await this.#folded({ e: one, a, v }, NOTHING_BOUND, rows);
    return this.#asked([e, v], [rest, folded], scope);
  }

  /** Turns known rows into an argument, in the form that is fastest in the clause's scope. */
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
    if (!isPlain(rows) || (!isBound(scope, entity) && !isBound(scope, value)))
      return this.#listing([entity, value], [call('identity', this.#argument(rows)), [[entity, value]]], scope);
    if (!isBound(scope, entity)) return [[call('get', this.#argument(grouped(rows, 1)), value), [entity, ELLIPSIS]]];
    if (!isBound(scope, value)) return [[call('get', this.#argument(grouped(rows, 0)), entity), [value, ELLIPSIS]]];
    const [pairs, pair] = [this.#argument(new EdnSet(rows)), this.#own('pair')];
    return this.#asked(
      [entity, value],
      [[[call('vector', entity, value), pair], [call('contains?', pairs, pair)]]],
      scope,
    );
  }

  /** Wraps a rule's clause in a join: the database inlines rules, and variables would clash. */
  #listing(terms: readonly EdnSymbol[], clause: Clause, scope: Scope): Clauses {
    return scope === 'rule' ? this.#asked(terms, [[clause]], scope) : [clause];
  }

  /** Keeps the added variables private. On the top level, a single branch needs no `or-join`. */
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
      const why =
        `the chats and sessions that the query reaches contain more than ${LARGEST_ARGUMENT} characters ` +
        'of one attribute';
      throw new HistoryError(
        'query-too-wide',
        `${why}: name the ones you need, as in [?s :session_id "S"], or through :in and --args`,
      );
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

  #withArguments(
    clause: Clause,
    rules: { readonly names: ReadonlySet<string>; readonly handedOn: readonly EdnSymbol[] },
  ): Clause {
    if (!(clause instanceof EdnList)) return clause;
    const [head = null, ...rest] = clause.items;
    const [name = ''] = symbolNames([head]);
    if (rules.names.has(name)) return withFirst(clause, rules.handedOn);
    if (name === 'not' || name === 'or' || name === 'and')
      return call(name, ...rest.map((part) => this.#withArguments(part, rules)));
    if (name !== 'not-join' && name !== 'or-join') return clause;
    const [terms = [], ...parts] = rest;
    const inside = parts.map((part) => this.#withArguments(part, rules));
    const there = symbolNames([terms]);
    const more = this.#argumentsIn(inside).filter((argument) => !there.includes(argument.name));
    return call(name, prepended(terms as readonly EdnValue[], more), ...inside);
  }
}

/**
 * Rewrites a reviewer's query over the SSOT's documents into a query over the stored documents
 * (decision G11). Folded values become arguments. A clause about an attribute that is stored in
 * another form is replaced by clauses that read this form. Parts never match.
 *
 * @throws {HistoryError} `query-refused`, `query-too-wide`, `query-timeout`
 */
export function rewriteQuery(query: ParsedQuery, sources: RewriteSources): Promise<RewrittenQuery> {
  return new QueryRewriter(query, sources).rewritten();
}
