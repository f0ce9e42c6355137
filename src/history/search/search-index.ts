import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { withinLimit } from '../../process/within-limit.js';
import type { ObjectStore } from '../../store/object-store.js';
import { IndexDamage } from '../../text-index/index-damage.js';
import { SegmentDraft } from '../../text-index/segment-draft.js';
import { type IndexPosition, TextIndex } from '../../text-index/text-index.js';
import type { Timeline } from '../rebuild/timeline.js';
import { indexEntries } from './index-entries.js';

/** Number of bytes of the log that are read at a time. */
const LOG_BYTES = 8 * 1_048_576;
/** Entries that are added without a pause in which a server can answer. */
const ENTRIES_AT_ONCE = 32;
/** Maximum time that a writer waits for another writer, in milliseconds. */
const OTHERS_MS = 600_000;

/** Maximum time that an answer to a program or an agent waits for the index, in milliseconds. */
export const INDEX_WAIT_MS = 2_000;

/** Reports the progress of the index, in transactions. */
export type IndexProgress = (done: number, all: number) => void;

/** Options for updating an index. */
export interface CatchUpOptions {
  /** The transaction that the index must cover. */
  readonly upto: number;
  /** Maximum wait in milliseconds; default: none. Indexing then continues in the background. */
  readonly limitMs?: number | undefined;
  readonly onProgress?: IndexProgress | undefined;
  /** Called with the reason if the index cannot be used. */
  readonly onFailure?: ((reason: string) => void) | undefined;
}

/**
 * The search index of one database. It is derived from the database, so a damaged index is removed
 * and built again.
 */
export class SearchIndex {
  readonly #folder: string;
  #index: Promise<TextIndex> | undefined;
  #running: Promise<void> | undefined;
  /**
   * The last transaction that the index is known to cover. The index's own position may be smaller,
   * because the log omits aborted transactions.
   */
  #covered = -1;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the index of a data folder. Undefined without one. */
  static in(dataDir: string | undefined): SearchIndex | undefined {
    return dataDir === undefined ? undefined : new SearchIndex(join(dataDir, 'search'));
  }

  /**
   * Returns the index once it covers a transaction. Undefined if that takes longer than the limit
   * or fails. The caller then reads all texts.
   */
  async upTo(store: ObjectStore, options: CatchUpOptions): Promise<TextIndex | undefined> {
    const { upto, limitMs = Number.POSITIVE_INFINITY, onFailure = () => undefined } = options;
    try {
      const index = await this.#opened();
      const covers = (): boolean => Math.max(index.position.txId, this.#covered) >= upto;
      if (covers()) return index;
      this.#running ??= this.#catchUp(index, store, options).finally(() => {
        this.#running = undefined;
      });
      const done = this.#running.then(() => true);
      const isDone = Number.isFinite(limitMs) ? await withinLimit(done, limitMs, () => false) : await done;
      return isDone && covers() ? index : undefined;
    } catch (error) {
      if (error instanceof IndexDamage) await this.clear().catch(() => undefined);
      onFailure(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  /** Returns the index once it covers a timeline's present; see `upTo`. */
  of(timeline: Timeline, options: Omit<CatchUpOptions, 'upto'> = {}): Promise<TextIndex | undefined> {
    return this.upTo(timeline.store, { ...options, upto: timeline.present.basis.txId ?? -1 });
  }

  /** Removes the index. The next search builds it again. Throws system errors. */
  async clear(): Promise<void> {
    this.#index = undefined;
    this.#covered = -1;
    await TextIndex.remove(this.#folder);
  }

  async #opened(): Promise<TextIndex> {
    this.#index ??= TextIndex.open(this.#folder);
    try {
      const index = await this.#index;
      await index.reload();
      return index;
    } catch (error) {
      this.#index = undefined;
      if (!(error instanceof IndexDamage)) throw error;
      await this.clear();
      this.#index = TextIndex.open(this.#folder);
      return this.#index;
    }
  }

  #catchUp(
    index: TextIndex,
    store: ObjectStore,
    { upto, onProgress }: Pick<CatchUpOptions, 'upto' | 'onProgress'>,
  ): Promise<void> {
    return index.writing(OTHERS_MS, async () => {
      if (index.position.txId >= upto) return;
      if (!(await isOf(store, index.position))) await index.clear();
      const latest = await store.latest();
      let draft = new SegmentDraft();
      let position = index.position;
      let next = readLog(store, position.txId);
      while (position.txId < upto) {
        const logged = await next;
        // Texts of later transactions are not in this snapshot.
        const transactions = logged.filter(({ txId }) => txId <= (latest.basis.txId ?? -1));
        const last = transactions.at(-1);
        if (last === undefined) {
          this.#covered = latest.basis.txId ?? -1;
          break;
        }
        // The node reads the next transactions while these are indexed.
        if (last.txId < upto) next = readLog(store, last.txId);
        const entries = await indexEntries(transactions, (hashes) => latest.texts(hashes));
        for (const [i, entry] of entries.entries()) {
          draft.add(entry);
          if (i % ENTRIES_AT_ONCE === 0) await setImmediate();
        }
        position = { txId: last.txId, txTime: last.txTime.getTime() };
        onProgress?.(position.txId, upto);
        if (!draft.isFull) continue;
        // If this process is killed later, the next process continues from this position.
        await index.add(draft, position);
        draft = new SegmentDraft();
      }
      await index.add(draft, position);
    });
  }
}

function readLog(store: ObjectStore, after: number): ReturnType<ObjectStore['loggedAfter']> {
  const read = store.loggedAfter(after, LOG_BYTES);
  // A failure must not count as unhandled before the promise is awaited.
  read.catch(() => undefined);
  return read;
}

/** Returns whether an index was built from this database, by its last transaction's time. */
async function isOf(store: ObjectStore, { txId, txTime }: IndexPosition): Promise<boolean> {
  if (txId < 0) return true;
  const [first] = await store.loggedAfter(txId - 1, 1);
  return first?.txId === txId && first.txTime.getTime() === txTime;
}
