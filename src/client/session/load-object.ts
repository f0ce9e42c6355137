import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { ObjectStore } from '../../store/object-store.js';
import { XtdbError } from '../../xtdb/errors.js';
import type { MarkedVersion } from '../delivery/session-write.js';
import type { SessionEnvironment } from './session-environment.js';

/** An object in full, and the way to its whole text where only head and tail stand in `content` (decisions B8, C6). */
export interface LoadedObject {
  readonly version: ObjectVersion;
  /** A file that is confirmed deleted (decision C3). */
  readonly gone: boolean;
  /** The whole text; `content` itself where that is whole or where more was never kept; null where there is no text. */
  wholeText(): Promise<string | null>;
}

function localObject({ version, marks, wholeText }: MarkedVersion): LoadedObject {
  return { version, gone: marks.gone === true, wholeText: async () => wholeText?.() ?? version.content };
}

/**
 * Loads an object as it stands, this client's own acknowledged versions included, or as of a transaction; undefined when there was none by this id.
 * While the database is away, the version that was met last serves.
 */
export async function loadObject(environment: SessionEnvironment, id: ObjectId, txId?: number): Promise<LoadedObject | undefined> {
  const { store, outbox, recent } = environment;
  const pending = txId === undefined ? outbox.pending(id) : undefined;
  if (pending !== undefined) return localObject(pending);
  const known = txId === undefined ? recent.get(id) : undefined;
  // A tool call has one version; what is known of it never changes. Unless only head and tail of it are at hand.
  if (known?.version.type === 'toolcall' && known.marks.whole === undefined) return localObject(known);
  try {
    return await storedObject(store, id, txId);
  } catch (error) {
    if (known === undefined || !(error instanceof XtdbError)) throw error;
    return localObject(known);
  }
}

async function storedObject(store: ObjectStore, id: ObjectId, txId: number | undefined): Promise<LoadedObject | undefined> {
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
