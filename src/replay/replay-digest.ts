import { createHash } from 'node:crypto';
import pLimit from 'p-limit';
import { chatObjectId, type ObjectId, type SessionId, sessionObjectId, systemPromptObjectId } from '../objects/ids.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import type { ContextMeasure } from './context-measure.js';

/** What a digest is made of for one session. */
export interface DigestedSession {
  readonly id: SessionId;
  readonly contexts: readonly ContextMeasure[];
  /** The session index in its order. */
  readonly index: readonly ObjectId[];
}

/** Objects of a replay as the database holds them at its end. */
export interface ReplayObjects {
  readonly files: number;
  /** Versions beyond the first of each file. */
  readonly fileUpdates: number;
  /** Files that were never read. */
  readonly stubs: number;
  readonly deleted: number;
  readonly toolcalls: number;
}

export interface ReplayDigest {
  readonly digest: string;
  readonly objects: ReplayObjects;
}

const AT_ONCE = 6;

interface Version {
  readonly hash: unknown;
  readonly validTime: Date;
}

/** Every version of a file, by its head alone: all their texts together may be more than a process should hold. */
async function versionsOf(snapshot: StoreSnapshot, id: ObjectId): Promise<readonly Version[]> {
  const history = await snapshot.historyOfHeads(id);
  return history.map(({ document, validTime }) => ({ hash: document?.object_hash ?? null, validTime }));
}

/**
 * SHA-256 over what a replay brought forth, in order: every assembled context, every version of every content object with its valid time, and the final
 * chat, sets and prompt of every session. Transaction times and the versions that only opening or pausing a session makes are not in it: two replays of one
 * recording have the same digest, on any machine, whether one was interrupted or not.
 */
export async function replayDigest(snapshot: StoreSnapshot, sessions: readonly DigestedSession[]): Promise<ReplayDigest> {
  const hash = createHash('sha256');
  const line = (...words: readonly unknown[]): void => {
    hash.update(`${JSON.stringify(words)}\n`);
  };
  for (const { contexts } of sessions) {
    for (const { session, turn, step, sha256 } of contexts) line('context', session, turn, step, sha256);
  }
  const ids = [...new Set(sessions.flatMap(({ index }) => index))];
  const heads = await snapshot.heads(ids);
  const limit = pLimit(AT_ONCE);
  const objects = { files: 0, fileUpdates: 0, stubs: 0, deleted: 0, toolcalls: 0 };
  const versions = await Promise.all(
    ids.map(async (id): Promise<readonly Version[]> => {
      const head = heads.get(id);
      if (head === undefined) return [];
      const { document, marks, validTime } = head;
      const only = [{ hash: document.object_hash, validTime }];
      if (document.type !== 'file') {
        objects.toolcalls += 1;
        return only;
      }
      objects.files += 1;
      const gone = marks.gone === true;
      if (gone) objects.deleted += 1;
      else if (document.file_hash === null) {
        objects.stubs += 1;
        return only;
      }
      const all = await limit(() => versionsOf(snapshot, id));
      objects.fileUpdates += all.length - 1;
      return all;
    }),
  );
  for (const [i, id] of ids.entries()) {
    for (const version of versions[i] ?? []) line('version', id, version.hash, version.validTime.getTime());
  }
  for (const { id } of sessions) {
    const keys = [sessionObjectId(id), chatObjectId(id), systemPromptObjectId(id)];
    const found = await snapshot.getMany(keys);
    for (const key of keys) line('session', key, found.get(key)?.version.object_hash ?? null);
  }
  return { digest: hash.digest('hex'), objects };
}
