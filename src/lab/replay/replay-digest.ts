import { createHash } from 'node:crypto';
import pLimit from 'p-limit';
import {
  chatObjectId,
  type ObjectId,
  type SessionId,
  sessionObjectId,
  systemPromptObjectId,
} from '../../objects/ids.js';
import type { Head } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { ContextMeasure } from './context-measure.js';

/** The data of a session that the digest covers. */
interface DigestedSession {
  readonly id: SessionId;
  readonly contexts: readonly ContextMeasure[];
  /** The session index in order. */
  readonly index: readonly ObjectId[];
}

/** Counts of the objects in the database at the end of a replay. */
interface ReplayObjects {
  readonly files: number;
  /** Number of file versions, without the first of each file. */
  readonly fileUpdates: number;
  /** Number of files that were never read. */
  readonly stubs: number;
  readonly deleted: number;
  readonly toolcalls: number;
}

/** The hash of a replay's results, and counts of its objects. */
export interface ReplayDigest {
  readonly digest: string;
  readonly objects: ReplayObjects;
}

const AT_ONCE = 6;

interface Version {
  readonly hash: unknown;
  readonly validTime: Date;
}

/** Maximum heads per query. A long session's heads take many megabytes. */
const HEADS_AT_ONCE = 500;

type Counted = { -readonly [K in keyof ReplayObjects]: ReplayObjects[K] };

/** Counts and returns an object's versions. Tool calls and stubs have only their head. */
async function countedVersions(
  snapshot: StoreSnapshot,
  { id, head }: { readonly id: ObjectId; readonly head: Head | undefined },
  counts: Counted,
): Promise<readonly Version[]> {
  if (head === undefined) return [];
  const { document, marks, validTime } = head;
  const only = [{ hash: document.object_hash, validTime }];
  if (document.type !== 'file') {
    counts.toolcalls += 1;
    return only;
  }
  counts.files += 1;
  if (marks.gone === true) counts.deleted += 1;
  else if (document.file_hash === null) {
    counts.stubs += 1;
    return only;
  }
  // Reads heads only, because all texts together may not fit into memory.
  const all = await snapshot.historyOfHeads(id);
  counts.fileUpdates += all.length - 1;
  return all.map((version) => ({ hash: version.document?.object_hash ?? null, validTime: version.validTime }));
}

/**
 * Returns the SHA-256 over the results of a replay in order. The results are every assembled
 * context, every object version with its valid time, and each session's final chat, sets and
 * prompt. The hash does not cover transaction times, nor versions made only by opening or pausing a
 * session.
 *
 * So two replays of a recording have equal digests on any machine, even if one was interrupted.
 */
export async function replayDigest(
  snapshot: StoreSnapshot,
  sessions: readonly DigestedSession[],
): Promise<ReplayDigest> {
  const hash = createHash('sha256');
  const line = (...words: readonly unknown[]): void => {
    hash.update(`${JSON.stringify(words)}\n`);
  };
  for (const { contexts } of sessions) {
    for (const { session, turn, step, sha256 } of contexts) line('context', session, turn, step, sha256);
  }
  const all = [...new Set(sessions.flatMap(({ index }) => index))];
  const limit = pLimit(AT_ONCE);
  const objects: Counted = { files: 0, fileUpdates: 0, stubs: 0, deleted: 0, toolcalls: 0 };
  for (let from = 0; from < all.length; from += HEADS_AT_ONCE) {
    const ids = all.slice(from, from + HEADS_AT_ONCE);
    const heads = await snapshot.heads(ids);
    const versions = await Promise.all(
      ids.map((id) => limit(() => countedVersions(snapshot, { id, head: heads.get(id) }, objects))),
    );
    for (const [i, id] of ids.entries()) {
      for (const version of versions[i] ?? []) line('version', id, version.hash, version.validTime.getTime());
    }
  }
  for (const { id } of sessions) {
    // Reads one object at a time, because the chat of a long session is large.
    for (const key of [sessionObjectId(id), chatObjectId(id), systemPromptObjectId(id)])
      line('session', key, (await snapshot.get(key))?.version.object_hash ?? null);
  }
  return { digest: hash.digest('hex'), objects };
}
