import { metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { AbsentObjects, ShownAhead } from '../../objects/assembly-proof.js';
import { type ObjectId, type Sha256, systemPromptObjectId } from '../../objects/ids.js';
import { systemPromptVersion } from '../../objects/versions.js';
import type { FileAccess } from '../file-access.js';
import type { KnownVersions, MarkedVersion } from './known-versions.js';
import type { KnownObjects, MetadataCache } from './metadata-cache.js';
import type { ViewedSession } from './optimistic-view.js';

/** The parts of a context that is assembled without the database, and how to rebuild it. */
export interface KnownContext {
  readonly metadata: ReadonlyMap<ObjectId, ObjectMetadata>;
  /** The contents of the active objects. */
  readonly versions: ReadonlyMap<ObjectId, MarkedVersion>;
  /**
   * The transaction at which every object that is not in `ahead` had the shown version. Undefined
   * if nothing was read yet.
   */
  readonly aheadOf: number | undefined;
  readonly ahead: readonly ShownAhead[];
  /** The objects that could not be shown. Undefined if there are none. */
  readonly absent: AbsentObjects | undefined;
}

/** The caches of a client. */
interface Known {
  readonly metadata: MetadataCache;
  readonly versions: KnownVersions;
  readonly files: FileAccess;
}

/** A loaded session, and how far its objects were read. */
interface LoadedObjects extends ViewedSession {
  readonly readAt?: KnownObjects;
}

const laterOf = (one: KnownObjects | undefined, other: KnownObjects | undefined): KnownObjects | undefined =>
  (one?.txId ?? -1) < (other?.txId ?? -1) ? other : one;

/** An object in its shown version. */
interface ShownObject {
  readonly metadata: ObjectMetadata;
  readonly hash: Sha256;
  /** Whether the version comes from the database and no newer one is in delivery. */
  readonly isStored: boolean;
}

/**
 * Returns an object's version in delivery, or else the last known stored version. Undefined if it
 * is unknown or outside this client's folders.
 */
function shownOf({ metadata, versions, files }: Known, id: ObjectId): ShownObject | undefined {
  const pending = versions.pending(id);
  if (pending === undefined) {
    const stored = metadata.stored(id);
    return stored === undefined ? undefined : { metadata: stored.metadata, hash: stored.hash, isStored: true };
  }
  const described = metadataOf(pending.version, pending.marks, files);
  return described === undefined
    ? undefined
    : { metadata: described, hash: pending.version.object_hash, isStored: false };
}

const isGone = ({ metadata }: ShownObject): boolean => metadata.type === 'file' && metadata.state === 'deleted';

/**
 * Returns the shown version of an object if it is in memory. A call has only one version, so its
 * hash need not match.
 */
function contentOf({ versions }: Known, id: ObjectId, shown: ShownObject): MarkedVersion | undefined {
  const isShown = ({ version, marks }: MarkedVersion): boolean =>
    version.type === 'toolcall' || (version.object_hash === shown.hash && (marks.gone === true) === isGone(shown));
  return [versions.pending(id), versions.recent(id)].find((one) => one !== undefined && isShown(one));
}

/**
 * Builds the parts of a context without the database, from the last known stored versions and the
 * versions in delivery. Each file is shown in the version that `ahead` names, or else in its newest
 * version at `aheadOf`. So the context can be rebuilt even if a delivery fails (decision 0010). A
 * tracker's observations are in no journal, so the caller must store them before it hands the
 * context out.
 */
export function knownContext(known: Known, { state, prompt, readAt }: LoadedObjects): KnownContext {
  const { metadata: cache } = known;
  const { index, active } = state.sets;
  const { txId: aheadOf, objects = 0 } = laterOf(cache.knownUpto(state.id), readAt) ?? {};
  const ahead: ShownAhead[] = [
    { id: systemPromptObjectId(state.id), object_hash: systemPromptVersion(state.id, prompt).object_hash },
  ];
  const lines: ObjectId[] = [];
  const shown = new Map<ObjectId, ShownObject>();
  for (const [place, id] of index.entries()) {
    const one = shownOf(known, id);
    if (one !== undefined) shown.set(id, one);
    else if (!cache.hidesAny([id])) lines.push(id);
    const isRead = aheadOf !== undefined && place < objects && one?.isStored === true && cache.isNewestAt(id, aheadOf);
    if (one?.metadata.type === 'file' && !isRead)
      ahead.push({ id, object_hash: one.hash, ...(isGone(one) ? { gone: true } : {}) });
  }
  const texts: ObjectId[] = [];
  const versions = new Map<ObjectId, MarkedVersion>();
  for (const id of active) {
    const one = shown.get(id);
    const version = one === undefined ? undefined : contentOf(known, id, one);
    if (version !== undefined) versions.set(id, version);
    else if (one !== undefined) texts.push(id);
  }
  const metadata = new Map([...shown].map(([id, one]) => [id, one.metadata]));
  return {
    metadata,
    versions,
    aheadOf,
    ahead,
    absent: lines.length + texts.length === 0 ? undefined : { lines, texts },
  };
}
