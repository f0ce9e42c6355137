import { posix } from 'node:path';
import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import { type Resolution, resolveReference } from '../../session/object-reference.js';
import type { SessionState } from '../../session/session-state.js';
import type { ObjectStore } from '../../store/object-store.js';
import { XtdbError } from '../../xtdb/errors.js';
import type { MarkedVersion } from '../optimistic/known-versions.js';
import type { SessionEnvironment } from './session-environment.js';

/** One content object as the pool shows it [§3.2]. */
export interface PoolEntry {
  readonly metadata: ObjectMetadata;
  readonly active: boolean;
  readonly pinned: boolean;
}

/**
 * The object of a session that an agent names (decision D6): by id, unique prefix or display path; a path may also be relative to the agent's working
 * directory, as it may be everywhere else.
 */
export function resolveInSession({ metadata, files }: SessionEnvironment, state: SessionState, reference: string): Resolution {
  const displayPathOf = (id: ObjectId): string | undefined => {
    const known = metadata.get(id);
    return known?.type === 'file' ? known.displayPath : undefined;
  };
  const index = metadata.hidesAny(state.sets.index) ? state.sets.index.filter((id) => !metadata.hidesAny([id])) : state.sets.index;
  const resolution = resolveReference(reference, index, displayPathOf);
  if (resolution.kind !== 'unknown' || reference === '' || posix.isAbsolute(reference)) return resolution;
  const absolute = posix.resolve(files.cwd, reference);
  return resolveReference(absolute, index, displayPathOf);
}

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

/** What was found, unless it is a file that is not shown here. */
function shown(files: SessionEnvironment['files'], found: LoadedObject | undefined): LoadedObject | undefined {
  const source = found?.version.source ?? null;
  return source !== null && !files.shows(source) ? undefined : found;
}

/**
 * Loads an object as it stands, this client's own acknowledged versions included, or as of a transaction; undefined when there was none by this id, or
 * when it is a file outside the folders of this client.
 * While the database is away, the last version that this client wrote or loaded serves.
 */
export async function loadObject(environment: SessionEnvironment, id: ObjectId, txId?: number): Promise<LoadedObject | undefined> {
  const { store, versions, files } = environment;
  const pending = txId === undefined ? versions.pending(id) : undefined;
  if (pending !== undefined) return shown(files, localObject(pending));
  const known = txId === undefined ? versions.recent(id) : undefined;
  // A tool call has one version; what is known of it never changes. Unless only head and tail of it are at hand.
  if (known?.version.type === 'toolcall' && known.marks.whole === undefined) return localObject(known);
  try {
    return shown(files, await storedObject(store, id, txId));
  } catch (error) {
    if (known === undefined || !(error instanceof XtdbError)) throw error;
    return shown(files, localObject(known));
  }
}

async function storedObject(store: ObjectStore, id: ObjectId, txId: number | undefined): Promise<LoadedObject | undefined> {
  // The database would wait for a transaction that is still to come.
  if (txId !== undefined && txId > ((await store.latestTransaction()) ?? -1)) return undefined;
  const snapshot = await (txId === undefined ? store.latest() : store.asOf({ txId }));
  const found = await snapshot.get(id);
  if (found === undefined) return undefined;
  const { version, marks } = found;
  const wholeText = async (): Promise<string | null> => (await snapshot.wholeText(found))?.text ?? null;
  return { version, gone: marks.gone === true, wholeText };
}
