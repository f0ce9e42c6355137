import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import { SHORTEST_PREFIX } from './short-id.js';

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
