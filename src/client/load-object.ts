import type { ObjectVersion } from '../objects/seal.js';
import type { ObjectStore } from '../store/object-store.js';

/** An object in full, and the way to its whole text where only head and tail stand in `content` (decisions B8, C6). */
export interface LoadedObject {
  readonly version: ObjectVersion;
  /** A file that is confirmed deleted (decision C3). */
  readonly gone: boolean;
  /** The whole text; `content` itself where that is whole or where more was never kept; null where there is no text. */
  wholeText(): Promise<string | null>;
}

/** Loads an object as it stands, or as of a transaction; undefined when the database knows none by this id then. */
export async function loadObject(store: ObjectStore, id: string, txId?: number): Promise<LoadedObject | undefined> {
  const snapshot = await (txId === undefined ? store.now() : store.asOf({ txId }));
  const found = await snapshot.get(id);
  if (found === undefined) return undefined;
  const { version, marks } = found;
  const { content, content_hash, file_hash } = version;
  const whole = marks.whole ?? (file_hash !== null && file_hash !== content_hash ? file_hash : undefined);
  const wholeText = async (): Promise<string | null> =>
    whole === undefined || content === null ? content : ((await snapshot.text(whole)) ?? content);
  return { version, gone: marks.gone === true, wholeText };
}
