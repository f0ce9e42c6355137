import { EdnList, EdnMap, EdnSet, EdnSymbol, EdnTagged, type EdnValue, list, sym } from '../../edn/values.js';

/** `_`, or `_1` and the like: each stands for itself alone. */
const BLANK = /^_\d*$/;

/** Whether a term of a clause is a variable that other clauses may share. */
export const isVariable = (term: EdnValue | undefined): term is EdnSymbol =>
  term instanceof EdnSymbol && !BLANK.test(term.name);

/** Whether a clause says nothing about a place: it is left out, or blank. */
export const isOpen = (term: EdnValue | undefined): boolean =>
  term === undefined || (term instanceof EdnSymbol && BLANK.test(term.name));

/** The values that a term allows, any of them where it is a set; undefined for a variable and where it says nothing. */
export function constantsOf(term: EdnValue | undefined): readonly EdnValue[] | undefined {
  if (term === undefined || term instanceof EdnSymbol) return undefined;
  return term instanceof EdnSet ? term.items : [term];
}

/** The names of all symbols in some values, as often as they stand there. */
export function symbolNames(values: readonly EdnValue[]): readonly string[] {
  return values.flatMap((value) => {
    if (value instanceof EdnSymbol) return [value.name];
    if (Array.isArray(value)) return symbolNames(value as readonly EdnValue[]);
    if (value instanceof EdnList || value instanceof EdnSet) return symbolNames(value.items);
    if (value instanceof EdnMap) return symbolNames(value.flat);
    return value instanceof EdnTagged ? symbolNames([value.value]) : [];
  });
}

/** `(name ?a ?b)` */
export const call = (name: string, ...terms: readonly EdnValue[]): EdnList => list(sym(name), ...terms);

/** A triple clause; undefined for a clause that is none. */
export function tripleOf(
  clause: EdnValue,
): { readonly e: EdnValue; readonly a: EdnValue | undefined; readonly v: EdnValue | undefined } | undefined {
  if (!Array.isArray(clause)) return undefined;
  const [e, a, v] = clause as readonly EdnValue[];
  return e === undefined || e instanceof EdnList ? undefined : { e, a, v };
}

/** Terms with more before them; where the first ones stand in a vector, which says that they have a value, in that vector. */
export function prepended(terms: readonly EdnValue[], more: readonly EdnValue[]): readonly EdnValue[] {
  const [first, ...rest] = terms;
  return Array.isArray(first) ? [[...more, ...(first as readonly EdnValue[])], ...rest] : [...more, ...terms];
}

/** A call or head of a rule with more terms before its own. */
export function withFirst({ items }: EdnList, more: readonly EdnValue[]): EdnList {
  const [name = null, ...terms] = items;
  return new EdnList([name, ...prepended(terms, more)]);
}
