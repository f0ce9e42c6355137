import type { StillAtRest } from '../../filesystem/tracking/change-queue.js';
import type { FileObservation } from '../../indexing/decide-file.js';
import type { ObjectId } from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import { unlessAborted } from '../../values/unless-aborted.js';
import type { Outbox } from '../delivery/outbox.js';
import { type FileAccess, fileObjectId } from '../file-access.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import { type KnownFile, type OrphanedFile, type ReconcileOptions, reconcileSources } from './reconcile-sources.js';

/** What indexing on behalf of no session needs of a client. */
export interface IndexEnvironment {
  readonly files: FileAccess;
  readonly metadata: MetadataCache;
  readonly outbox: Outbox;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** Callbacks for what nobody waits for. */
export interface IndexListeners {
  /** Called when a source was read and not written, because what a call read of it is newer, or may be; once those calls have ended. It is to be indexed again. */
  readonly onPutOff: (source: FilesystemSource) => void;
  /** Called when a source came out of reach, or back into it. */
  readonly onReach?: () => void;
}

interface Asked {
  readonly source: FilesystemSource;
  readonly isStill: StillAtRest | undefined;
}

interface Round {
  readonly sources: Map<ObjectId, Asked>;
  readonly done: Promise<void>;
}

/**
 * Full indexing on behalf of no session [§5.6]: reads sources and writes the versions that differ, whatever sessions make of their objects. What changes
 * while a write is under way goes together into the next one, so that a burst is few transactions and an outage of the database holds a bounded
 * amount of text. Nothing of it needs the journal: what is lost with the process can be read again.
 */
export class SourceIndexer {
  readonly #environment: IndexEnvironment;
  readonly #listeners: IndexListeners;
  readonly #stop = new AbortController();
  readonly #orphaned = new Map<ObjectId, OrphanedFile>();
  /** The calls that are recording what they have read of a source. */
  readonly #recording = new Map<ObjectId, Set<Promise<unknown>>>();
  #next: Round | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(environment: IndexEnvironment, listeners: IndexListeners) {
    this.#environment = environment;
    this.#listeners = listeners;
  }

  /** Why a source could not be read the last time; undefined when it could. */
  orphaned(id: ObjectId): OrphanedFile | undefined {
    return this.#orphaned.get(id);
  }

  /** Forgets a source that no session uses any more. */
  forget(id: ObjectId): void {
    this.#orphaned.delete(id);
  }

  /**
   * Says that a call is recording what it has read of files, which may take it a while. What is read here of them before that has ended, well or badly, may be newer and would stand before it
   * (decision F7): so it is not written, and the file is read again then. Calls of two sessions do not wait for each other: of what both have read, the one that is acknowledged last stands last.
   */
  recording(files: readonly Pick<KnownFile, 'source'>[], recorded: Promise<unknown>): void {
    for (const id of new Set(files.map(({ source }) => fileObjectId(source)))) {
      const calls = this.#recording.get(id) ?? new Set();
      this.#recording.set(id, calls.add(recorded));
      const ended = (): void => {
        calls.delete(recorded);
        if (calls.size === 0 && this.#recording.get(id) === calls) this.#recording.delete(id);
      };
      recorded.then(ended, ended);
    }
  }

  /**
   * Reads a source from now on and resolves when the database has what it holds; nothing is written for one that cannot be read (decision C5), nor of one
   * that `isStill`, asked after the reading, says was written to meanwhile (decision C11). Rejects when it could not be written, and with the reason of `close`.
   */
  index(source: FilesystemSource, isStill?: StillAtRest): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.reject(this.#stop.signal.reason);
    this.#next ??= this.#begin();
    this.#next.sources.set(fileObjectId(source), { source, isStill });
    return this.#next.done;
  }

  /**
   * Reads many sources and resolves when the database has what differs; those that are as they are known are hashed only.
   * Rejects with the abort's reason and with what writing throws.
   */
  reconcile(known: readonly KnownFile[], options: Pick<ReconcileOptions, 'onProgress' | 'signal'> = {}): Promise<void> {
    return this.#reconcile(known, new Map(), options);
  }

  async #reconcile(
    known: readonly KnownFile[],
    asked: ReadonlyMap<ObjectId, Asked>,
    options: Pick<ReconcileOptions, 'onProgress' | 'signal'>,
  ): Promise<void> {
    const { metadata, files, outbox, clock } = this.#environment;
    const signal = options.signal === undefined ? this.#stop.signal : AbortSignal.any([options.signal, this.#stop.signal]);
    const before = new Map(known.map(({ id }) => [id, metadata.get(id)]));
    const onChanged = async (batch: readonly FileObservation[]): Promise<void> => {
      const fresh: FileObservation[] = [];
      const stand = await Promise.all(batch.map(({ source }) => asked.get(fileObjectId(source))?.isStill?.() ?? true));
      for (const file of batch.filter((_file, i) => stand[i])) {
        const id = fileObjectId(file.source);
        const calls = this.#recording.get(id);
        if (calls === undefined && metadata.get(id) === before.get(id)) fresh.push(file);
        // What was written of it after it was read here must not be undone, so it is read again.
        else this.#putOff(file.source, calls);
      }
      if (fresh.length > 0) await unlessAborted(outbox.index(fresh, clock()), signal);
    };
    const { states, orphaned } = await reconcileSources(files, known, { ...options, signal, onChanged });
    let moved = orphaned.length > 0;
    for (const id of states.keys()) moved = this.#orphaned.delete(id) || moved;
    for (const file of orphaned) this.#orphaned.set(file.id, file);
    if (moved) this.#listeners.onReach?.();
  }

  /** Ends reading and waiting; what is on its way to the database goes on. Idempotent. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the client is closed'));
    await this.#last;
  }

  /** Has a source indexed again, once the calls that are recording it have ended; nobody waits for it. */
  #putOff(source: FilesystemSource, calls: ReadonlySet<Promise<unknown>> = new Set()): void {
    void Promise.allSettled(calls).then(() => {
      if (!this.#stop.signal.aborted) this.#listeners.onPutOff(source);
    });
  }

  /** Begins a round: it takes in what is asked for until the round before it has ended. */
  #begin(): Round {
    const sources = new Map<ObjectId, Asked>();
    const done = this.#last.then(() => {
      this.#next = undefined;
      // Without a hash to compare with, the database alone says what is new: others write to it too.
      const known = [...sources].map(([id, { source }]) => ({ id, source, fileHash: null, gone: false }));
      return this.#reconcile(known, sources, {});
    });
    this.#last = done.catch(() => undefined);
    return { sources, done };
  }
}
