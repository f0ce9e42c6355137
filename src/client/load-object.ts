import type { ObjectId } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { SessionEnvironment } from './session-environment.js';
import type { MarkedVersion } from './session-write.js';

/** An object in full, and the way to its whole text where only head and tail stand in `content` (decisions B8, C6). */
export interface LoadedObject {
  readonly version: ObjectVersion;
  /** A file that is confirmed deleted (decision C3). */
  readonly gone: boolean;
  /** The whole text; `content` itself where that is whole or where more was never kept; null where there is no text. */
  wholeText(): Promise<string | null>;
}

function pendingObject({ version, marks, wholeText }: MarkedVersion): LoadedObject {
  return { version, gone: marks.gone === true, wholeText: async () => wholeText?.() ?? version.content };
}

/**
 * Loads an object as it stands, this client's own acknowledged versions included, or as of a transaction; undefined when there was none by this id.
 */
export async function loadObject({ store, outbox }: SessionEnvironment, id: ObjectId, txId?: number): Promise<LoadedObject | undefined> {
  const pending = txId === undefined ? outbox.pending(id) : undefined;
  if (pending !== undefined) return pendingObject(pending);
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
