import type { ObjectMetadata } from './metadata.js';
import { metadataLine } from './metadata-line.js';
import type { NameOf } from './names.js';

/** Pool lines under full ids, by what they are the line of: a client keeps the metadata of an object as long as nothing of it changes. */
const known: Readonly<Record<'strict' | 'plain', WeakMap<ObjectMetadata, string>>> = { strict: new WeakMap(), plain: new WeakMap() };

/** The lines of a pool; those of a long session are made once, not for each of its contexts. */
export function poolLines(
  pool: readonly ObjectMetadata[],
  nameOf: NameOf,
  { strict, shortIds }: { readonly strict: boolean; readonly shortIds: boolean },
): readonly string[] {
  // Short names depend on what else there is.
  if (shortIds) return pool.map((metadata) => metadataLine(metadata, nameOf, strict));
  const lines = known[strict ? 'strict' : 'plain'];
  return pool.map((metadata) => {
    const line = lines.get(metadata) ?? metadataLine(metadata, nameOf, strict);
    lines.set(metadata, line);
    return line;
  });
}
