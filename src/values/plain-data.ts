/** How deep data is compared and copied; what is nested deeper counts as another. */
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
 * Whether two values are the same plain data, as JSON has it. Writes nothing, and stops at the first difference. Anything but plain data is never the same as anything, not even as itself, since it
 * may change without a word; neither is what nests deeper than 200 levels.
 */
export const sameData = (a: unknown, b: unknown): boolean => same(a, b, 0);

function copied(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return value;
  if (Array.isArray(value)) return value.map((one) => copied(one, depth + 1));
  if (!isPlain(value)) return value;
  // fromEntries defines what plain assignment would not: a key `__proto__`.
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copied(member, depth + 1)]));
}

/** A copy of plain data that shares its texts with it and nothing else; what `sameData` never takes for the same is passed on as it is. */
export const copyOfData = <T>(value: T): T => copied(value, 0) as T;
