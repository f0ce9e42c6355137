import type { StillAtRest } from '../../filesystem/tracking/change-queue.js';
import type { Editor } from '../../objects/file-author.js';
import type { ObjectId } from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import { unlessAborted } from '../../values/promises.js';
import type { FileObservation } from '../decide-file.js';
import type { Outbox } from '../delivery/outbox.js';
import { type FileAccess, fileObjectId } from '../file-access.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import { type KnownFile, type OrphanedFile, type ReconcileOptions, reconcileSources } from './reconcile-sources.js';

/** The parts of a client that indexing without a session needs. */
export interface IndexEnvironment {
  readonly files: FileAccess;
  readonly metadata: MetadataCache;
  readonly outbox: Outbox;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** Callbacks for background work. */
export interface IndexListeners {
  /**
   * Called for a source that was read but not written, because a call may have a newer reading.
   * Called after such calls have ended. The source must then be indexed again.
   */
  readonly onPostponed: (source: FilesystemSource) => void;
  /** Called when a source becomes unreachable or reachable again. */
  readonly onReach?: () => void;
  /** Returns the editor that has just saved a source. Undefined without evidence of one. */
  readonly editorOf?: (source: FilesystemSource) => Promise<Editor | undefined>;
}

interface Asked {
  readonly source: FilesystemSource;
  readonly isStill: StillAtRest | undefined;
}

/** A round: sources that are read and written together. */
interface Round {
  readonly sources: Map<ObjectId, Asked>;
  readonly done: Promise<void>;
}

/**
 * Indexes files without a session [§5.6]: reads sources and writes versions that differ. Changes
 * that arrive during a write share the next one. So a burst needs few transactions, and an outage
 * holds a bounded amount of text. The journal is not needed, because files can be read again.
 */
export class SourceIndexer {
  readonly #environment: IndexEnvironment;
  readonly #listeners: IndexListeners;
  readonly #stop = new AbortController();
  readonly #orphaned = new Map<ObjectId, OrphanedFile>();
  /** Calls that are recording their readings of a source. */
  readonly #recording = new Map<ObjectId, Set<Promise<unknown>>>();
  #next: Round | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(environment: IndexEnvironment, listeners: IndexListeners) {
    this.#environment = environment;
    this.#listeners = listeners;
  }

  /** Returns why the last read of a source failed. Undefined if it succeeded. */
  orphaned(id: ObjectId): OrphanedFile | undefined {
    return this.#orphaned.get(id);
  }

  /** Forgets a source that no session uses any more. */
  forget(id: ObjectId): void {
    this.#orphaned.delete(id);
  }

  /**
   * Announces a call that is recording its readings of files, which may take a while. Until it
   * ends, this indexer's own readings of these files may be newer but would get an earlier valid
   * time (decision F7). They are not written, and the files are read again afterwards. Calls of two
   * sessions do not wait for each other. If both read a file, the one acknowledged last wins.
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
   * Reads a source and resolves when the database has its content. Writes nothing for an unreadable
   * source (decision C5). Also writes nothing if `isStill`, called after the read, returns false
   * because the source still changes (decision C11). Rejects if the write fails, and with the
   * reason of `close`.
   */
  index(source: FilesystemSource, isStill?: StillAtRest): Promise<void> {
    if (this.#stop.signal.aborted) return Promise.reject(this.#stop.signal.reason);
    this.#next ??= this.#begin();
    this.#next.sources.set(fileObjectId(source), { source, isStill });
    return this.#next.done;
  }

  /**
   * Reads many sources and resolves when the database has the changed ones. Unchanged sources are
   * only hashed. Rejects with the abort's reason and with write errors.
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
    const signal =
      options.signal === undefined ? this.#stop.signal : AbortSignal.any([options.signal, this.#stop.signal]);
    const before = new Map(known.map(({ id }) => [id, metadata.get(id)]));
    const onChanged = async (batch: readonly FileObservation[]): Promise<void> => {
      const fresh: FileObservation[] = [];
      const stand = await Promise.all(batch.map(({ source }) => asked.get(fileObjectId(source))?.isStill?.() ?? true));
      for (const file of batch.filter((_file, i) => stand[i])) {
        const id = fileObjectId(file.source);
        const calls = this.#recording.get(id);
        if (calls === undefined && metadata.get(id) === before.get(id)) fresh.push(file);
        // The file may have been written since the read, so read it again.
        else this.#postpone(file.source, calls);
      }
      if (fresh.length === 0) return;
      const authored = await Promise.all(fresh.map((file) => this.#withEditor(file)));
      await unlessAborted(outbox.index(authored, clock()), signal);
    };
    const { states, orphaned } = await reconcileSources(files, known, { ...options, signal, onChanged });
    let moved = orphaned.length > 0;
    for (const id of states.keys()) moved = this.#orphaned.delete(id) || moved;
    for (const file of orphaned) this.#orphaned.set(file.id, file);
    if (moved) this.#listeners.onReach?.();
  }

  /** Ends reading and waiting. Running deliveries continue. Idempotent. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the client is closed'));
    await this.#last;
  }

  /**
   * Schedules a source for indexing after the calls that record it have ended. Runs in the
   * background.
   */
  #postpone(source: FilesystemSource, calls: ReadonlySet<Promise<unknown>> = new Set()): void {
    void Promise.allSettled(calls).then(() => {
      if (!this.#stop.signal.aborted) this.#listeners.onPostponed(source);
    });
  }

  async #withEditor(file: FileObservation): Promise<FileObservation> {
    if (file.kind !== 'read') return file;
    const editor = await this.#listeners.editorOf?.(file.source);
    return editor === undefined ? file : { ...file, author: { kind: 'editor', editor } };
  }

  /** Begins a round. The round collects requests until the previous one has ended. */
  #begin(): Round {
    const sources = new Map<ObjectId, Asked>();
    const done = this.#last.then(() => {
      this.#next = undefined;
      // No hash is given: other clients write too, so only the database knows whether the content
      // is new.
      const known = [...sources].map(([id, { source }]) => ({ id, source, fileHash: null, gone: false }));
      return this.#reconcile(known, sources, {});
    });
    this.#last = done.catch(() => undefined);
    return { sources, done };
  }
}
