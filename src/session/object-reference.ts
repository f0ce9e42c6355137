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
  return new Map(
    sorted.map((id, i) => {
      const common = Math.max(commonLength(id, sorted[i - 1] ?? ''), commonLength(id, sorted[i + 1] ?? ''));
      return [id, prefixAfter(common, id)] as const;
    }),
  );
}

/** Returns the prefix of an id that shares `common` characters with the most similar other id. */
function prefixAfter(common: number, id: ObjectId): string {
  const length = Math.max(SHORTEST_PREFIX, 1 + common);
  const prefix = id.slice(0, length);
  return prefix.isWellFormed() ? prefix : id.slice(0, length + 1);
}

/**
 * Returns whether a model sees short ids (divergence D6). Default: unless `strict` follows the
 * specification literally.
 */
export const showsShortIds = (of: { readonly strict?: boolean; readonly shortIds?: boolean }): boolean =>
  of.shortIds ?? of.strict !== true;

/** Returns the short form of one id among others; see `shortIds`. Does not sort them. */
export function shortId(id: ObjectId, ids: Iterable<ObjectId>): string {
  let common = 0;
  let longer = id.slice(0, 1);
  for (const other of ids) {
    if (other === id || !other.startsWith(longer)) continue;
    common = commonLength(id, other);
    longer = id.slice(0, common + 1);
  }
  return prefixAfter(common, id);
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
