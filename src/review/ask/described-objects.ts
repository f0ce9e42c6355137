import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import { storedCallName } from '../../history/rebuild/call-names.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId } from '../../objects/ids.js';
import type { Head } from '../../store/snapshot-rows.js';

/** An object with its name for people. */
export type Described = ObjectMetadata & { readonly name: string };

/**
 * Returns the names of a session's objects: from step pages if they have them, otherwise by one
 * query.
 */
export async function describe(
  { present, paths: shown }: Pick<Timeline, 'present' | 'paths'>,
  ids: readonly ObjectId[],
): Promise<ReadonlyMap<ObjectId, Described>> {
  const found = new Map<ObjectId, Described>();
  // Omits the check of visibility, because a session that may be opened shows its whole contexts.
  const paths: DisplayPaths = { display: (source) => shown.display(source) };
  const learn = (id: ObjectId, { document, marks }: Pick<Head, 'document' | 'marks'>): void => {
    const metadata = metadataOf(document, marks, paths);
    if (metadata === undefined) return;
    const name = metadata.type === 'file' ? metadata.displayPath : storedCallName(document, shown.plainCalls);
    found.set(id, { ...metadata, name });
  };
  for (const id of ids) {
    const call = present.knownCall(id);
    if (call !== undefined) learn(id, call as Pick<Head, 'document' | 'marks'>);
  }
  for (const [id, head] of await present.heads(ids.filter((id) => !found.has(id)))) learn(id as ObjectId, head);
  return found;
}
