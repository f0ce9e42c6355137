import type { Json } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';

/** Number of hexadecimal digits in the first half of a UUID, before its variant. */
const FIRST = 16;

const hexOf = (names: readonly Json[]): string => hashText(JSON.stringify(names));

/**
 * Returns a UUID that is always the same for the same names (RFC 9562, version 8). Its first half
 * depends only on `first`, so related ids can be found. Its second half depends on all names.
 */
export function stableUuid(first: readonly Json[], rest: readonly Json[]): string {
  const [head, tail] = [hexOf(first), hexOf([...first, ...rest])];
  const variant = '89ab'.charAt(Number.parseInt(tail.charAt(0), 16) % 4);
  return [
    head.slice(0, 8),
    head.slice(8, 12),
    `8${head.slice(13, FIRST)}`,
    `${variant}${tail.slice(1, 4)}`,
    tail.slice(4, 16),
  ].join('-');
}

/** Returns true if two such UUIDs were made from the same `first` names. */
export function sharesFirst(one: string, other: string): boolean {
  const length = FIRST + '--'.length;
  return one.slice(0, length).toLowerCase() === other.slice(0, length);
}
