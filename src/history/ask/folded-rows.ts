import { EdnMap, EdnSet, type EdnValue } from '../../edn/values.js';
import { distinctRows } from '../../xtdb/datalog.js';
import type { FoldedRow } from './folded-values.js';
import { constantsOf } from './query-terms.js';

/** UTF-16 units of the largest argument that the node takes, counted as it does: sixteen for each value beside its text. */
export const LARGEST_ARGUMENT = 16_777_216;
const UNITS_OF_A_VALUE = 16;

/** The units of an argument, counted as the node does. */
export function sizeOf(value: EdnValue): number {
  const own = UNITS_OF_A_VALUE + (typeof value === 'string' ? value.length : 0);
  if (Array.isArray(value)) return (value as readonly EdnValue[]).reduce<number>((sum, one) => sum + sizeOf(one), own);
  if (value instanceof EdnSet) return value.items.reduce<number>((sum, one) => sum + sizeOf(one), own);
  return value instanceof EdnMap ? value.flat.reduce<number>((sum, one) => sum + sizeOf(one), own) : own;
}

/** Rows as a map from one column to the values of the other. */
export function grouped(rows: readonly FoldedRow[], by: 0 | 1): EdnMap {
  const groups = new Map<EdnValue, EdnValue[]>();
  for (const row of rows) {
    const group = groups.get(row[by]);
    if (group === undefined) groups.set(row[by], [row[1 - by] as EdnValue]);
    else group.push(row[1 - by] as EdnValue);
  }
  return new EdnMap([...groups].flat());
}

/** Whether the values of some rows can be keys. Turns are maps, and forks share them. */
export const isPlain = (rows: readonly FoldedRow[]): boolean => rows.every(([, one]) => typeof one !== 'object');

/** The rows that the constants of a clause allow. */
export function matching(rows: readonly FoldedRow[], e: EdnValue, v: EdnValue | undefined): readonly FoldedRow[] {
  const [ids, values] = [constantsOf(e), constantsOf(v)];
  const isSame = (one: EdnValue, other: EdnValue): boolean =>
    one === other || distinctRows([[one], [other]]).length === 1;
  return rows.filter(
    ([id, value]) =>
      (ids === undefined || ids.includes(id)) && (values === undefined || values.some((one) => isSame(one, value))),
  );
}
