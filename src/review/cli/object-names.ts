import { escapedLine } from '../../cli/output.js';
import { storedCallName } from '../../history/rebuild/call-names.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId } from '../../objects/ids.js';

const isDigest = (id: string): boolean => /^[0-9a-f]{64}$/.test(id);

/** Shortens a digest to twelve characters, which are enough to identify it. */
export const shortName = (id: string): string => (isDigest(id) ? id.slice(0, 12) : escapedLine(id));

/** Returns an object's name for people. */
export type NameOf = (id: ObjectId) => string;

/**
 * Returns the names of objects: the path of a file, and a call's tool and action. With `ids`, each
 * name is followed by the object's id.
 */
export async function namesFor(
  { present, paths }: Timeline,
  objects: readonly ObjectId[],
  { ids = false }: { readonly ids?: boolean | undefined } = {},
): Promise<NameOf> {
  const unique = [...new Set(objects)];
  const names = new Map<string, string>();
  const [sources, heads] = await Promise.all([
    present.sourcesOf(unique.filter(isDigest)),
    present.heads(unique.filter((id) => !isDigest(id))),
  ]);
  for (const [id, { source }] of sources) names.set(id, paths.display(source));
  for (const [id, { document }] of heads)
    if (document.type === 'toolcall')
      names.set(id, `${storedCallName(document)}${document.status === 'ok' ? '' : ' ✗'}`);
  return (id) => {
    const name = names.get(id);
    return name === undefined ? shortName(id) : ids ? `${name} ${shortName(id)}` : name;
  };
}
