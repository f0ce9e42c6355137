import { type Json, unboundedJson } from './canonical-json.js';
import { hashText } from './hashes.js';
import type { Sha256 } from './ids.js';
import type { ToolcallInput } from './versions.js';

type Args = ToolcallInput['args'];

/**
 * Bounds within which a call's arguments are stored unchanged (decision 0005). Ordinary calls have
 * a few names and the text of a file.
 */
export const ARGS_BOUNDS = {
  /** Names at all depths together. */
  names: 1_024,
  /**
   * Names of one object that share a Java hash. The database's maps compare each further name with
   * all of them.
   */
  namesOfOneHash: 64,
  /** Nesting depth of values below the arguments. */
  depth: 200,
  /** UTF-16 units of all names and texts. Every other value counts as eight. */
  units: 8 * 1_048_576,
} as const;

const UNITS_OF_A_VALUE = 8;

/**
 * Key of the placeholder for arguments over a bound. It holds the hash of their text, which is
 * stored in parts, and its length in UTF-16 units.
 */
const KEPT_AS_TEXT = 'palimpsest:kept_as_text';

function javaHash(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(31, hash) + name.charCodeAt(i)) | 0;
  return hash;
}

function haveOneHash(names: readonly string[]): boolean {
  if (names.length <= ARGS_BOUNDS.namesOfOneHash) return false;
  const counts = new Map<number, number>();
  for (const name of names) {
    const hash = javaHash(name);
    const count = (counts.get(hash) ?? 0) + 1;
    if (count > ARGS_BOUNDS.namesOfOneHash) return true;
    counts.set(hash, count);
  }
  return false;
}

/**
 * Returns whether arguments exceed a bound or hold a number that JSON cannot represent. Inspects no
 * more than the bounds allow.
 */
function isOverBounds(args: Args): boolean {
  const waiting: { readonly value: Json; readonly depth: number }[] = [{ value: args, depth: 0 }];
  let names = 0;
  let units = 0;
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, depth } = next;
    units += typeof value === 'string' ? value.length : UNITS_OF_A_VALUE;
    if (depth > ARGS_BOUNDS.depth || units > ARGS_BOUNDS.units) return true;
    if (typeof value === 'number' && !Number.isFinite(value)) return true;
    if (value === null || typeof value !== 'object') continue;
    const members: readonly Json[] = Array.isArray(value) ? value : Object.values(value);
    if (!Array.isArray(value)) {
      const own = Object.keys(value);
      names += own.length;
      if (names > ARGS_BOUNDS.names || haveOneHash(own)) return true;
      units += own.reduce((sum, name) => sum + name.length, 0);
    }
    if (units + members.length * UNITS_OF_A_VALUE > ARGS_BOUNDS.units) return true;
    for (const member of members) waiting.push({ value: member, depth: depth + 1 });
  }
  return false;
}

/**
 * Makes every text within the bounds well-formed so that it can be stored exactly (decision G8). A
 * lone surrogate becomes U+FFFD.
 */
function wellFormed(value: Json): Json {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key.toWellFormed(), wellFormed(member as Json)]),
  );
}

/** The stored form of a call's arguments. */
export interface KeptArgs {
  readonly args: Args;
  /** The full canonical JSON if `args` only refer to it. */
  readonly text?: { readonly hash: Sha256; readonly text: string };
}

/**
 * Returns the stored form of a call's arguments (reading 0005). Arguments over a bound become
 * one complete text. Equal arguments have equal stored forms. The result is a copy, because a call
 * is sealed after its caller has the answer.
 *
 * @throws {DocumentError} `invalid-value` if the arguments are not JSON
 */
export function keptArgs(args: Args): KeptArgs {
  if (!isOverBounds(args)) return { args: wellFormed(args) as Args };
  const text = unboundedJson(args);
  const hash = hashText(text);
  return { args: { [KEPT_AS_TEXT]: { sha256: hash, chars: text.length } }, text: { hash, text } };
}

/**
 * Returns the hash of the text that holds a call's arguments. Undefined if they are stored
 * unchanged.
 */
export function keptArgsHash(args: unknown): Sha256 | undefined {
  if (typeof args !== 'object' || args === null || !Object.hasOwn(args, KEPT_AS_TEXT) || Object.keys(args).length !== 1)
    return undefined;
  const { sha256 } = (args as { readonly [KEPT_AS_TEXT]: { readonly sha256?: unknown } | null })[KEPT_AS_TEXT] ?? {};
  return typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) ? (sha256 as Sha256) : undefined;
}
