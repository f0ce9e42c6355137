import { EdnList, EdnMap, EdnSet, EdnSymbol, EdnTagged, type EdnValue, list, sym } from '../../edn/values.js';

/** `_`, `_1` and similar names. Each occurrence is independent. */
const BLANK = /^_\d*$/;

/** Returns whether a term is a variable that other clauses may share. */
export const isVariable = (term: EdnValue | undefined): term is EdnSymbol =>
  term instanceof EdnSymbol && !BLANK.test(term.name);

/** Returns whether a term is absent or blank, so that it matches any value. */
export const isOpen = (term: EdnValue | undefined): boolean =>
  term === undefined || (term instanceof EdnSymbol && BLANK.test(term.name));

/**
 * Returns the values that a term allows. A set allows each of its members. Undefined for a
 * variable, and for an absent or blank term.
 */
export function constantsOf(term: EdnValue | undefined): readonly EdnValue[] | undefined {
  if (term === undefined || term instanceof EdnSymbol) return undefined;
  return term instanceof EdnSet ? term.items : [term];
}

/** Returns the names of all symbols in some values. A name may occur several times. */
export function symbolNames(values: readonly EdnValue[]): readonly string[] {
  return values.flatMap((value) => {
    if (value instanceof EdnSymbol) return [value.name];
    if (Array.isArray(value)) return symbolNames(value as readonly EdnValue[]);
    if (value instanceof EdnList || value instanceof EdnSet) return symbolNames(value.items);
    if (value instanceof EdnMap) return symbolNames(value.flat);
    return value instanceof EdnTagged ? symbolNames([value.value]) : [];
  });
}

/** Builds a list such as `(name ?a ?b)`. */
export const call = (name: string, ...terms: readonly EdnValue[]): EdnList => list(sym(name), ...terms);

/** Returns a triple clause. Undefined for any other clause. */
export function tripleOf(
  clause: EdnValue,
): { readonly e: EdnValue; readonly a: EdnValue | undefined; readonly v: EdnValue | undefined } | undefined {
  if (!Array.isArray(clause)) return undefined;
  const [e, a, v] = clause as readonly EdnValue[];
  return e === undefined || e instanceof EdnList ? undefined : { e, a, v };
}

/**
 * Puts `more` before the terms. If the terms begin with a vector, which marks its variables as
 * bound, `more` joins that vector.
 */
export function prepended(terms: readonly EdnValue[], more: readonly EdnValue[]): readonly EdnValue[] {
  const [first, ...rest] = terms;
  return Array.isArray(first) ? [[...more, ...(first as readonly EdnValue[])], ...rest] : [...more, ...terms];
}

/** Puts `more` before the terms of a call or a rule head. */
export function withFirst({ items }: EdnList, more: readonly EdnValue[]): EdnList {
  const [name = null, ...terms] = items;
  return new EdnList([name, ...prepended(terms, more)]);
}
