import { posix } from 'node:path';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import { resolveFrom, shownPath } from '../../filesystem/access/native-path.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import { type Resolution, resolveReference } from '../../session/object-reference.js';
import type { SessionState } from '../../session/session-state.js';
import type { ObjectStore } from '../../store/object-store.js';
import { XtdbError } from '../../xtdb/errors.js';
import type { MarkedVersion } from '../optimistic/known-versions.js';
import type { SessionEnvironment } from './session-environment.js';

/** A content object as the pool shows it [§3.2]. */
export interface PoolEntry {
  readonly metadata: ObjectMetadata;
  readonly active: boolean;
  readonly pinned: boolean;
}

/** Returns the metadata pool of a session in its order [§3.1], with the active and pinned state. */
export function poolOf({
  state,
  metadata,
}: {
  readonly state: SessionState;
  metadata(id: ObjectId): ObjectMetadata | undefined;
}): readonly PoolEntry[] {
  return state.sets.index.flatMap((id) => {
    const known = metadata(id);
    return known === undefined ? [] : [{ metadata: known, active: state.isActive(id), pinned: state.isPinned(id) }];
  });
}

/**
 * Returns the session's object that an agent names (decision D6): by id, unique prefix or display
 * path. A path may be relative to the agent's working directory.
 */
export function resolveInSession(
  { metadata, files }: SessionEnvironment,
  state: SessionState,
  reference: string,
): Resolution {
  const displayPathOf = (id: ObjectId): string | undefined => {
    const known = metadata.get(id);
    return known?.type === 'file' ? known.displayPath : undefined;
  };
  const index = metadata.hidesAny(state.sets.index)
    ? state.sets.index.filter((id) => !metadata.hidesAny([id]))
    : state.sets.index;
  const resolution = resolveReference(reference, index, displayPathOf);
  if (resolution.kind !== 'unknown' || reference === '' || posix.isAbsolute(reference)) return resolution;
  const absolute = shownPath(resolveFrom(files.cwd, reference));
  return resolveReference(absolute, index, displayPathOf);
}

/**
 * A whole object, with access to its whole text if `content` holds only head and tail (decisions
 * B8, C6).
 */
export interface LoadedObject {
  readonly version: ObjectVersion;
  /** Whether the file is confirmed deleted (decision C3). */
  readonly gone: boolean;
  /**
   * Returns the whole text. Returns `content` if that is whole or nothing more was stored, and null
   * if there is no text.
   */
  wholeText(): Promise<string | null>;
}

function localObject({ version, marks, wholeText }: MarkedVersion): LoadedObject {
  return { version, gone: marks.gone === true, wholeText: async () => wholeText?.() ?? version.content };
}

/** Returns undefined for a file outside this client's folders. */
function shown(files: SessionEnvironment['files'], found: LoadedObject | undefined): LoadedObject | undefined {
  const source = found?.version.source ?? null;
  return source !== null && !files.shows(source) ? undefined : found;
}

/**
 * Loads an object's current version, including this client's acknowledged ones, or its version as
 * of a transaction. Returns undefined if it did not exist, or if the file is outside this client's
 * folders. During an outage, returns the last version that this client wrote or loaded.
 */
export async function loadObject(
  environment: SessionEnvironment,
  id: ObjectId,
  txId?: number,
): Promise<LoadedObject | undefined> {
  const { store, versions, files } = environment;
  const pending = txId === undefined ? versions.pending(id) : undefined;
  if (pending !== undefined) return shown(files, localObject(pending));
  const known = txId === undefined ? versions.recent(id) : undefined;
  // A tool call has only one version, so the known one suffices unless it has only head and tail.
  if (known?.version.type === 'toolcall' && known.marks.whole === undefined) return localObject(known);
  try {
    return shown(files, await storedObject(store, id, txId));
  } catch (error) {
    if (known === undefined || !(error instanceof XtdbError)) throw error;
    return shown(files, localObject(known));
  }
}

async function storedObject(
  store: ObjectStore,
  id: ObjectId,
  txId: number | undefined,
): Promise<LoadedObject | undefined> {
  // Do not read at a future transaction: the database would wait for it.
  if (txId !== undefined && txId > ((await store.latestTransaction()) ?? -1)) return undefined;
  const snapshot = await (txId === undefined ? store.latest() : store.asOf({ txId }));
  const found = await snapshot.get(id);
  if (found === undefined) return undefined;
  const { version, marks } = found;
  const wholeText = async (): Promise<string | null> => (await snapshot.wholeText(found))?.text ?? null;
  return { version, gone: marks.gone === true, wholeText };
}
