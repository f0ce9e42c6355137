import { EdnList, EdnMap, EdnSet, EdnSymbol, EdnTagged, type EdnValue } from '../../edn/values.js';
import { HistoryError } from '../rebuild/history-error.js';

/** Functions whose result can be as large as all of their arguments together. */
const GROWING: ReadonlySet<string> = new Set('str concat conj cons assoc list vector'.split(' '));
/** Calls after which two variables are the same. */
const SAME: ReadonlySet<string> = new Set(['=', '==']);
const JOINS: ReadonlySet<string> = new Set(['not', 'or', 'and', 'not-join', 'or-join']);

/** How often a value may be made out of one that was made so itself, and out of how many arguments. */
const MOST_TIMES = 2;
const MOST_ARGUMENTS = 10;

interface Call {
  readonly grows: number;
  readonly reads: readonly string[];
  readonly binds: readonly string[];
}

const refused = (why: string): HistoryError =>
  new HistoryError('query-refused', `the query ${why}: what it makes could outgrow the memory of the database`);

const partsOf = (value: EdnValue): readonly EdnValue[] => {
  if (Array.isArray(value)) return value as readonly EdnValue[];
  if (value instanceof EdnList || value instanceof EdnSet) return value.items;
  if (value instanceof EdnMap) return value.flat;
  return value instanceof EdnTagged ? [value.value] : [];
};

const symbolsIn = (value: EdnValue): readonly string[] =>
  value instanceof EdnSymbol ? [value.name] : partsOf(value).flatMap((part) => symbolsIn(part));

const headOf = (value: EdnList): string => (value.items[0] instanceof EdnSymbol ? value.items[0].name : '');

/** How many growing calls stand in a call, itself included. */
function growingIn(value: EdnValue): number {
  const inside = partsOf(value).reduce<number>((sum, part) => sum + growingIn(part), 0);
  if (!(value instanceof EdnList) || !GROWING.has(headOf(value))) return inside;
  if (value.items.length - 1 > MOST_ARGUMENTS) throw refused(`gives ${headOf(value)} more than ${MOST_ARGUMENTS} arguments`);
  return inside + 1;
}

function callsIn(clause: EdnValue): readonly Call[] {
  if (clause instanceof EdnList) {
    const [, ...rest] = clause.items;
    if (JOINS.has(headOf(clause))) return rest.flatMap(callsIn);
    // A rule may make any of its variables out of any other.
    const all = rest.flatMap(symbolsIn);
    return [{ grows: 0, reads: all, binds: all }];
  }
  const [call, ...bound] = partsOf(clause);
  if (!(call instanceof EdnList)) return [];
  const reads = call.items.slice(1).flatMap(symbolsIn);
  return [{ grows: growingIn(call), reads, binds: [...bound.flatMap(symbolsIn), ...(SAME.has(headOf(call)) ? reads : [])] }];
}

/**
 * Refuses queries that make ever larger values: `[(str ?a ?a) ?b] [(str ?b ?b) ?c] …` doubles a text with each clause, and no limit on rows or time comes before the
 * end of the node's memory. The order of clauses does not matter, as it does not to the database. Throws HistoryError `query-refused`.
 */
export function checkGrowth(where: readonly EdnValue[], rules: readonly EdnValue[]): void {
  for (const rule of rules) {
    const inside = partsOf(rule).slice(1).flatMap(callsIn);
    if (inside.some(({ grows }) => grows > 0)) throw refused('makes texts or collections inside a rule, which may call itself');
  }
  const calls = where.flatMap(callsIn);
  const times = new Map<string, number>();
  for (let changed = true; changed; ) {
    changed = false;
    for (const { grows, reads, binds } of calls) {
      const made = grows + Math.max(0, ...reads.map((name) => times.get(name) ?? 0));
      if (made > MOST_TIMES) throw refused(`makes a text or collection out of made ones more than ${MOST_TIMES} times`);
      for (const name of binds) {
        if ((times.get(name) ?? 0) >= made) continue;
        times.set(name, made);
        changed = true;
      }
    }
  }
}
