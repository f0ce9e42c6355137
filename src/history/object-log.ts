import type { ObjectId, Sha256 } from '../objects/ids.js';
import type { ObjectType } from '../objects/object-type.js';
import type { HistoryVersion, StoreSnapshot } from '../store/store-snapshot.js';

/** What a version says of its object. */
export type VersionState = 'stub' | 'text' | 'not-text' | 'deleted' | 'removed';

/** One version of an object as a log shows it, with both of its times [decision F7]. */
export interface LoggedVersion {
  /** From 1, in the order of valid time. */
  readonly number: number;
  readonly type: ObjectType | undefined;
  readonly state: VersionState;
  readonly validTime: Date;
  readonly txTime: Date;
  readonly txId: number;
  /** UTF-16 units of the stored text. */
  readonly chars: number;
  readonly contentHash: Sha256 | null;
  readonly fileHash: Sha256 | null;
  readonly objectHash: Sha256 | null;
}

function stateOf({ version, marks }: HistoryVersion): VersionState {
  if (version === undefined) return 'removed';
  if (marks.gone === true) return 'deleted';
  if (version.type === 'file' && version.file_hash === null) return 'stub';
  return version.type === 'file' && version.content_hash === null ? 'not-text' : 'text';
}

/** Every version of an object up to a snapshot's basis, the newest first; at most `limit` of them. */
export async function objectLog(
  snapshot: StoreSnapshot,
  id: ObjectId,
  limit = Number.POSITIVE_INFINITY,
): Promise<readonly LoggedVersion[]> {
  const history = await snapshot.history(id);
  const versions = history.map((entry, i): LoggedVersion => {
    const { version, validTime, txTime, txId } = entry;
    return {
      number: i + 1,
      type: version?.type,
      state: stateOf(entry),
      validTime,
      txTime,
      txId,
      chars: version?.content?.length ?? 0,
      contentHash: version?.content_hash ?? null,
      fileHash: version?.file_hash ?? null,
      objectHash: version?.object_hash ?? null,
    };
  });
  return versions.reverse().slice(0, limit);
}
