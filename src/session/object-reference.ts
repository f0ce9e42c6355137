import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import { commonLength } from '../values/common-length.js';

/** Minimum length of a prefix that names an object (decision D6). */
const SHORTEST_PREFIX = 8;

/**
 * Returns the shortest unique prefix of each id, at least eight characters long (decision D6). An
 * id that is shorter, or a prefix of another id, stays whole. So a full id always names itself.
 */
export function shortIds(ids: Iterable<ObjectId>): ReadonlyMap<ObjectId, string> {
  // In sorted order, neighbours have the longest common prefixes.
  const sorted = [...new Set(ids)].sort();
  const short = sorted.map((id, i): readonly [ObjectId, string] => {
    const length = Math.max(
      SHORTEST_PREFIX,
      1 + Math.max(commonLength(id, sorted[i - 1] ?? ''), commonLength(id, sorted[i + 1] ?? '')),
    );
    const prefix = id.slice(0, length);
    return [id, prefix.isWellFormed() ? prefix : id.slice(0, length + 1)];
  });
  return new Map(short);
}

/**
 * Returns whether a model sees short ids (divergence D6). Default: unless `strict` follows the
 * specification literally.
 */
export const showsShortIds = (of: { readonly strict?: boolean; readonly shortIds?: boolean }): boolean =>
  of.shortIds ?? of.strict !== true;

/** Returns the short form of one id among others; see `shortIds`. */
export function shortId(id: ObjectId, ids: Iterable<ObjectId>): string {
  return shortIds([...ids, id]).get(id) as string;
}

/**
 * The object that an agent's reference names (decision D6). A miss is a value, not an error.
 * `candidates` are the first five matches.
 */
export type Resolution =
  | { readonly kind: 'found'; readonly id: ObjectId }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'ambiguous'; readonly candidates: readonly ObjectId[] }
  | { readonly kind: 'infrastructure' };

const CANDIDATES = 5;

/** Removes the quotes of a value that the agent copied as it was rendered (decision E3). */
function unquoted(text: string): string | undefined {
  if (!text.startsWith('"')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

function one(matches: readonly ObjectId[]): Resolution | undefined {
  const [id] = matches;
  if (id === undefined) return undefined;
  return matches.length === 1 ? { kind: 'found', id } : { kind: 'ambiguous', candidates: matches.slice(0, CANDIDATES) };
}

/**
 * Finds exact matches. A full id beats a display path, and a path beats a prefix. A prefix match
 * never makes an exact match ambiguous.
 */
function resolveExactly(
  text: string,
  ids: readonly ObjectId[],
  displayPathOf: (id: ObjectId) => string | undefined,
): Resolution | undefined {
  const full = ids.find((id) => id === text);
  if (full !== undefined) return { kind: 'found', id: full };
  if (isInfrastructureId(text)) return { kind: 'infrastructure' };
  const byPath = one(ids.filter((id) => displayPathOf(id) === text));
  if (byPath !== undefined || text.length < SHORTEST_PREFIX) return byPath;
  return one(ids.filter((id) => id.startsWith(text)));
}

/**
 * Finds the session's object for a reference: a full id, a display path, or a unique prefix of at
 * least eight characters (decision D6). `index` is in insertion order, which fixes the order of
 * candidates. A reference may be quoted as in the pool (decision E3).
 */
export function resolveReference(
  text: string,
  index: Iterable<ObjectId>,
  displayPathOf: (id: ObjectId) => string | undefined,
): Resolution {
  const ids = [...index];
  const found = resolveExactly(text, ids, displayPathOf);
  if (found !== undefined) return found;
  const inner = unquoted(text);
  return (inner === undefined ? undefined : resolveExactly(inner, ids, displayPathOf)) ?? { kind: 'unknown' };
}
