import type { ObjectId } from '../objects/ids.js';

/** Characters of the shortest prefix that names an object (decision D6). */
export const SHORTEST_PREFIX = 8;

function commonLength(a: string, b: string | undefined): number {
  if (b === undefined) return 0;
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}

/**
 * The shortest prefix of each id, of at least eight characters, that no other of these ids begins with (decision D6). An id that another one
 * begins with, or that is shorter than that, stands in full: a full id always names itself.
 */
export function shortIds(ids: Iterable<ObjectId>): ReadonlyMap<ObjectId, string> {
  // Among sorted ids, the longest common prefix of any two is that of neighbours.
  const sorted = [...new Set(ids)].sort();
  const short = sorted.map((id, i): readonly [ObjectId, string] => {
    const length = Math.max(SHORTEST_PREFIX, 1 + Math.max(commonLength(id, sorted[i - 1]), commonLength(id, sorted[i + 1])));
    const prefix = id.slice(0, length);
    return [id, prefix.isWellFormed() ? prefix : id.slice(0, length + 1)];
  });
  return new Map(short);
}

/** The short form of one id among others; see `shortIds`. */
export function shortId(id: ObjectId, ids: Iterable<ObjectId>): string {
  return shortIds([...ids, id]).get(id) ?? id;
}
