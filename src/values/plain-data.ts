/** Maximum depth of comparison and copy. Deeper values count as different. */
const DEEPEST = 200;

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function sameMembers(a: object, b: object, depth: number): boolean {
  if (!isPlain(a) || !isPlain(b)) return false;
  const [one, other] = [a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>];
  let more = 0;
  for (const name in one) {
    more += 1;
    if (!Object.hasOwn(other, name) || !same(one[name], other[name], depth + 1)) return false;
  }
  for (const _ in other) more -= 1;
  return more === 0;
}

function same(a: unknown, b: unknown, depth: number): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b;
  if (depth > DEEPEST) return false;
  if (!Array.isArray(a)) return !Array.isArray(b) && sameMembers(a, b, depth);
  if (!Array.isArray(b) || a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!same(a[i], b[i], depth + 1)) return false;
  return true;
}

/**
 * Returns whether two values are the same plain JSON data. Allocates nothing and stops at the first
 * difference. Other values are never equal, not even to themselves, because a change in them would
 * not be noticed. Values nested deeper than 200 levels are never equal either.
 */
export const sameData = (a: unknown, b: unknown): boolean => same(a, b, 0);

function copied(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return value;
  if (Array.isArray(value)) return value.map((one) => copied(one, depth + 1));
  if (!isPlain(value)) return value;
  // Unlike an assignment, `fromEntries` defines a key `__proto__`.
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copied(member, depth + 1)]));
}

/**
 * Returns a deep copy of plain data. Values that `sameData` never accepts are passed on uncopied.
 */
export const copyOfData = <T>(value: T): T => copied(value, 0) as T;
