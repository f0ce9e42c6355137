import { metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { AbsentObjects, ShownAhead } from '../../objects/assembly-proof.js';
import { type ObjectId, type Sha256, systemPromptObjectId } from '../../objects/ids.js';
import { systemPromptVersion } from '../../objects/versions.js';
import type { FileAccess } from '../file-access.js';
import type { KnownVersions, MarkedVersion } from './known-versions.js';
import type { KnownObjects, MetadataCache } from './metadata-cache.js';
import type { ViewedSession } from './optimistic-view.js';

/** What a context is made of that is assembled without the database, and how it is made again. */
export interface KnownContext {
  readonly metadata: ReadonlyMap<ObjectId, ObjectMetadata>;
  /** What the active objects hold. */
  readonly versions: ReadonlyMap<ObjectId, MarkedVersion>;
  /** The transaction that everything not listed in `ahead` was the newest at; undefined where nothing was read yet. */
  readonly aheadOf: number | undefined;
  readonly ahead: readonly ShownAhead[];
  /** Undefined where nothing is missing. */
  readonly absent: AbsentObjects | undefined;
}

/** Where a client keeps what it knows. */
interface Known {
  readonly metadata: MetadataCache;
  readonly versions: KnownVersions;
  readonly files: FileAccess;
}

/** A session as this process holds it, and how far its objects were read when it was loaded. */
interface LoadedObjects extends ViewedSession {
  readonly readAt?: KnownObjects;
}

const laterOf = (one: KnownObjects | undefined, other: KnownObjects | undefined): KnownObjects | undefined =>
  (one?.txId ?? -1) < (other?.txId ?? -1) ? other : one;

/** An object in the version that is shown of it. */
interface ShownObject {
  readonly metadata: ObjectMetadata;
  readonly hash: Sha256;
  /** Whether the database said so, and nothing is on its way. */
  readonly isStored: boolean;
}

/** What is on its way of an object, else what the database said last; undefined where it is not known, or not shown here. */
function shownOf({ metadata, versions, files }: Known, id: ObjectId): ShownObject | undefined {
  const pending = versions.pending(id);
  if (pending === undefined) {
    const stored = metadata.stored(id);
    return stored === undefined ? undefined : { metadata: stored.metadata, hash: stored.hash, isStored: true };
  }
  const described = metadataOf(pending.version, pending.marks, files);
  return described === undefined ? undefined : { metadata: described, hash: pending.version.object_hash, isStored: false };
}

const isGone = ({ metadata }: ShownObject): boolean => metadata.type === 'file' && metadata.state === 'deleted';

/** The version that is shown of an object, where it is at hand. A call has one version. */
function contentOf({ versions }: Known, id: ObjectId, shown: ShownObject): MarkedVersion | undefined {
  const isShown = ({ version, marks }: MarkedVersion): boolean =>
    version.type === 'toolcall' || (version.object_hash === shown.hash && (marks.gone === true) === isGone(shown));
  return [versions.pending(id), versions.recent(id)].find((one) => one !== undefined && isShown(one));
}

/**
 * What a context of a session is made of without the database: what its client has heard from it, and over that what is on its way there. Every file is in the version that
 * the record names, or in its newest one at the transaction that the session's objects are known as of, so that the context can be made again whatever comes of what is on
 * its way (decision 0010). What a tracker read is in no journal: whoever hands the context out sees to it that it is kept.
 */
export function knownContext(known: Known, { state, prompt, readAt }: LoadedObjects): KnownContext {
  const { metadata: cache } = known;
  const { index, active } = state.sets;
  const { txId: aheadOf, objects = 0 } = laterOf(cache.knownUpto(state.id), readAt) ?? {};
  const ahead: ShownAhead[] = [{ id: systemPromptObjectId(state.id), object_hash: systemPromptVersion(state.id, prompt).object_hash }];
  const lines: ObjectId[] = [];
  const shown = new Map<ObjectId, ShownObject>();
  for (const [place, id] of index.entries()) {
    const one = shownOf(known, id);
    if (one !== undefined) shown.set(id, one);
    else if (!cache.hidesAny([id])) lines.push(id);
    const isRead = aheadOf !== undefined && place < objects && one?.isStored === true && cache.isNewestAt(id, aheadOf);
    if (one?.metadata.type === 'file' && !isRead) ahead.push({ id, object_hash: one.hash, ...(isGone(one) ? { gone: true } : {}) });
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
  return { metadata, versions, aheadOf, ahead, absent: lines.length + texts.length === 0 ? undefined : { lines, texts } };
}
