import { EdnMap, EdnSet, type EdnValue } from '../../edn/values.js';
import { distinctRows } from '../../xtdb/datalog.js';
import type { FoldedRow } from './folded-values.js';
import { constantsOf } from './query-terms.js';

/**
 * The largest argument that the node accepts, in UTF-16 units. Each value counts 16 units more than
 * its text.
 */
export const LARGEST_ARGUMENT = 16_777_216;
const UNITS_OF_A_VALUE = 16;

/** Returns the size of an argument, counted as the node counts it. */
export function sizeOf(value: EdnValue): number {
  const own = UNITS_OF_A_VALUE + (typeof value === 'string' ? value.length : 0);
  if (Array.isArray(value)) return (value as readonly EdnValue[]).reduce<number>((sum, one) => sum + sizeOf(one), own);
  if (value instanceof EdnSet) return value.items.reduce<number>((sum, one) => sum + sizeOf(one), own);
  return value instanceof EdnMap ? value.flat.reduce<number>((sum, one) => sum + sizeOf(one), own) : own;
}

/** Groups rows by one column. Each value of that column maps to the values of the other column. */
export function grouped(rows: readonly FoldedRow[], by: 0 | 1): EdnMap {
  const groups = new Map<EdnValue, EdnValue[]>();
  for (const row of rows) {
    const group = groups.get(row[by]);
    if (group === undefined) groups.set(row[by], [row[1 - by] as EdnValue]);
    else group.push(row[1 - by] as EdnValue);
  }
  return new EdnMap([...groups].flat());
}

/** Returns whether the values of all rows can be keys. A turn cannot, because it is a map. */
export const isPlain = (rows: readonly FoldedRow[]): boolean => rows.every(([, one]) => typeof one !== 'object');

/** Returns the rows that match the constants of a clause. */
export function matching(rows: readonly FoldedRow[], e: EdnValue, v: EdnValue | undefined): readonly FoldedRow[] {
  const [ids, values] = [constantsOf(e), constantsOf(v)];
  const isSame = (one: EdnValue, other: EdnValue): boolean =>
    one === other || distinctRows([[one], [other]]).length === 1;
  return rows.filter(
    ([id, value]) =>
      (ids === undefined || ids.includes(id)) && (values === undefined || values.some((one) => isSame(one, value))),
  );
}
