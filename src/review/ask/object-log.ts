import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { ObjectType } from '../../objects/object-type.js';
import type { HistoryHead } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { StoredDocument } from '../../xtdb/documents.js';

/** How much of an object a version recorded. */
export type VersionState = 'stub' | 'text' | 'not-text' | 'deleted' | 'removed';

/** One version of an object in a log, with both its times [decision F7]. */
export interface LoggedVersion {
  /** Number of the version, from 1, in the order of valid time. */
  readonly number: number;
  readonly type: ObjectType | undefined;
  readonly state: VersionState;
  readonly validTime: Date;
  readonly txTime: Date;
  readonly txId: number;
  /** Length of the stored text in UTF-16 units. */
  readonly chars: number;
  readonly contentHash: Sha256 | null;
  readonly fileHash: Sha256 | null;
  readonly objectHash: Sha256 | null;
}

/** Returns how much of the object a version recorded. */
export function versionState({ document, marks }: Pick<HistoryHead, 'document' | 'marks'>): VersionState {
  if (document === undefined) return 'removed';
  if (marks.gone === true) return 'deleted';
  if (document.type === 'file' && document.file_hash === null) return 'stub';
  return document.type === 'file' && document.content_hash === null ? 'not-text' : 'text';
}

/** Returns the length of a version's text from its head. Undefined if the head does not show it. */
function charsOf({ document, marks }: HistoryHead): number | undefined {
  if (document === undefined || document.content_hash === null) return 0;
  if (typeof document.content === 'string') return document.content.length;
  return document.type === 'file' ? Number(document.char_count) : marks.size;
}

const hashOf = (document: StoredDocument | undefined, name: string): Sha256 | null =>
  (document?.[name] ?? null) as Sha256 | null;

/** Converts versions of an object, oldest first, to log entries, newest first. */
export async function loggedVersions(
  snapshot: StoreSnapshot,
  heads: readonly HistoryHead[],
): Promise<readonly LoggedVersion[]> {
  const versions = heads.map(async (head): Promise<LoggedVersion> => {
    const { number, document, validTime, txTime, txId } = head;
    const contentHash = hashOf(document, 'content_hash');
    const chars =
      charsOf(head) ??
      (contentHash === null ? 0 : ((await snapshot.texts([contentHash])).get(contentHash)?.length ?? 0));
    return {
      number,
      type: document?.type as ObjectType | undefined,
      state: versionState(head),
      validTime,
      txTime,
      txId,
      chars,
      contentHash,
      fileHash: hashOf(document, 'file_hash'),
      objectHash: hashOf(document, 'object_hash'),
    };
  });
  return (await Promise.all(versions)).reverse();
}

/**
 * Returns at most `limit` versions of an object up to a snapshot's basis, newest first. Reads heads
 * only, so the cost depends on the number of versions and not on their texts.
 */
export async function objectLog(
  snapshot: StoreSnapshot,
  id: ObjectId,
  limit = Number.POSITIVE_INFINITY,
): Promise<readonly LoggedVersion[]> {
  return loggedVersions(snapshot, await snapshot.historyOfHeads(id, limit));
}
