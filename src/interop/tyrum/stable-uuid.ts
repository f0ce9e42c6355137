import type { Json } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';

/** Hexadecimal digits of the first half: those before the variant of a UUID. */
const FIRST = 16;

const hexOf = (names: readonly Json[]): string => hashText(JSON.stringify(names));

/**
 * A UUID that is always the same for the same names (RFC 9562, version 8): its first half by the first names alone, so that what belongs together is found by it, the second by all of them.
 */
export function stableUuid(first: readonly Json[], rest: readonly Json[]): string {
  const [head, tail] = [hexOf(first), hexOf([...first, ...rest])];
  const variant = '89ab'.charAt(Number.parseInt(tail.charAt(0), 16) % 4);
  return [head.slice(0, 8), head.slice(8, 12), `8${head.slice(13, FIRST)}`, `${variant}${tail.slice(1, 4)}`, tail.slice(4, 16)].join('-');
}

/** Whether two such UUIDs have the same first names. */
export function sharesFirst(one: string, other: string): boolean {
  const length = FIRST + '--'.length;
  return one.slice(0, length).toLowerCase() === other.slice(0, length);
}
