import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import { commonLength } from '../values/common-length.js';

/** Characters of the shortest prefix that names an object (decision D6). */
const SHORTEST_PREFIX = 8;

/**
 * The shortest prefix of each id, of at least eight characters, that no other of these ids begins with (decision D6). An id that another one
 * begins with, or that is shorter than that, stands in full: a full id always names itself.
 */
export function shortIds(ids: Iterable<ObjectId>): ReadonlyMap<ObjectId, string> {
  // Among sorted ids, the longest common prefix of any two is that of neighbours.
  const sorted = [...new Set(ids)].sort();
  const short = sorted.map((id, i): readonly [ObjectId, string] => {
    const length = Math.max(SHORTEST_PREFIX, 1 + Math.max(commonLength(id, sorted[i - 1] ?? ''), commonLength(id, sorted[i + 1] ?? '')));
    const prefix = id.slice(0, length);
    return [id, prefix.isWellFormed() ? prefix : id.slice(0, length + 1)];
  });
  return new Map(short);
}

/** The short form of one id among others; see `shortIds`. */
export function shortId(id: ObjectId, ids: Iterable<ObjectId>): string {
  return shortIds([...ids, id]).get(id) ?? id;
}

/** What a reference of an agent names (decision D6). Not found is a value; `candidates` are the first five of several. */
export type Resolution =
  | { readonly kind: 'found'; readonly id: ObjectId }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'ambiguous'; readonly candidates: readonly ObjectId[] }
  | { readonly kind: 'infrastructure' };

const CANDIDATES = 5;

/** A value may come back as it was rendered: quoted (decision E3). */
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

/** A full id wins over a display path, and a path over a prefix: what is exact is never made ambiguous by what merely begins alike. */
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
 * Finds the object of a session that an agent names: by full id, by display path, or by a unique prefix of eight or more characters
 * (decision D6). `index` is in insertion order, so that candidates come in a fixed order. A reference may be quoted as the pool quotes it (decision E3).
 */
export function resolveReference(text: string, index: Iterable<ObjectId>, displayPathOf: (id: ObjectId) => string | undefined): Resolution {
  const ids = [...index];
  const found = resolveExactly(text, ids, displayPathOf);
  if (found !== undefined) return found;
  const inner = unquoted(text);
  return (inner === undefined ? undefined : resolveExactly(inner, ids, displayPathOf)) ?? { kind: 'unknown' };
}
