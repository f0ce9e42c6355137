import { EdnList, type EdnSymbol, type EdnValue } from '../../edn/values.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { ownMember } from '../../values/own-member.js';
import type { DatalogQuery } from '../../xtdb/datalog.js';
import type { ParsedQuery } from './parse-query.js';
import { isVariable, symbolNames, tripleOf } from './query-terms.js';
import { attributeAsked, SSOT_ATTRIBUTES } from './ssot-attributes.js';

/**
 * Maximum rows of the query for a variable's possible values. With more rows, the variable is
 * treated as unrestricted.
 */
const MOST_ROWS = 20_000;

/**
 * Returns the entities that a variable can match, from the query's other clauses. Undefined if
 * these clauses do not restrict the variable.
 */
export type Reached = (variable: EdnSymbol) => Promise<readonly string[] | undefined>;

/**
 * Returns the top-level clauses about a variable that the database can answer without a rewrite.
 */
function clausesAbout({ where }: ParsedQuery, variable: EdnSymbol): readonly EdnValue[] {
  const open = where.flatMap((clause) => {
    const triple = tripleOf(clause);
    if (triple === undefined) return [];
    const kept = ownMember(SSOT_ATTRIBUTES, attributeAsked(triple.a));
    return kept === 'direct' || kept === 'shared'
      ? [{ clause, names: [triple.e, triple.v].filter(isVariable).map(({ name }) => name) }]
      : [];
  });
  const known = new Set([variable.name]);
  const about: EdnValue[] = [];
  for (let found = open.length > 0; found; ) {
    found = false;
    for (const { clause, names } of open) {
      if (about.includes(clause) || !names.some((name) => known.has(name))) continue;
      about.push(clause);
      for (const name of names) known.add(name);
      found = true;
    }
  }
  return about;
}

/**
 * Returns whether a rule or a join of the query has its own variable of a name. A join has one if
 * it does not import the name.
 */
function isShadowed({ where, rules = [] }: ParsedQuery, name: string): boolean {
  const isInside = (clause: EdnValue): boolean => {
    if (!(clause instanceof EdnList)) return false;
    const [head = null, ...rest] = clause.items;
    const [operator = ''] = symbolNames([head]);
    const [terms = null, ...parts] = rest;
    if (operator !== 'or-join' && operator !== 'not-join') return rest.some(isInside);
    return (symbolNames(parts).includes(name) && !symbolNames([terms]).includes(name)) || parts.some(isInside);
  };
  return symbolNames(rules).includes(name) || where.some(isInside);
}

/**
 * Returns a function that queries the possible values of a variable. It uses only clauses that need
 * no folded value.
 */
export function reachedEntities(
  snapshot: StoreSnapshot,
  query: ParsedQuery,
  { args, timeoutMs }: { readonly args: readonly EdnValue[]; readonly timeoutMs: number },
): Reached {
  return async (variable) => {
    // The outer variable does not restrict the inner one.
    if (isShadowed(query, variable.name)) return undefined;
    const where = clausesAbout(query, variable);
    if (where.length === 0 && !symbolNames(query.in ?? []).includes(variable.name)) return undefined;
    const sent = {
      find: [variable],
      ...defined({ in: query.in }),
      ...(where.length === 0 ? {} : { where }),
      limit: MOST_ROWS + 1,
      timeoutMs,
    };
    const rows = await snapshot.rows(sent as unknown as DatalogQuery, args, { timeoutMs: timeoutMs + 2_000 });
    if (rows.length > MOST_ROWS) return undefined;
    return [...new Set(rows.flatMap(([value]) => (typeof value === 'string' ? [value] : [])))];
  };
}
