import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { StillAtRest } from '../../filesystem/tracking/change-queue.js';
import { stampOf } from '../../filesystem/tracking/file-stamp.js';
import { FileTracker, type FileTrackerOptions, type TrackRequest } from '../../filesystem/tracking/file-tracker.js';
import type { KnownContent } from '../../filesystem/tracking/track-folder.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import { DeferredWork } from '../../values/deferred-work.js';
import { defined } from '../../values/defined.js';
import { messageOf } from '../../values/thrown.js';
import type { FileObservation } from '../decide-file.js';
import { fileObjectId } from '../file-access.js';
import { type IndexEnvironment, SourceIndexer } from './index-sources.js';
import { filesToReconcile, type KnownFile, type OrphanedFile } from './reconcile-sources.js';
import { type ResumePart, SourceResume } from './source-resume.js';

/** Tracking settings. The times are those of the file tracker. */
export interface TrackingOptions extends Omit<FileTrackerOptions, 'onChange' | 'onState'> {}

/** Settings with the client's callback. */
export interface TrackingSettings extends TrackingOptions {
  /** Called when the status may have changed. */
  readonly onStatus?: () => void;
}

/** The current tracking status [§5.9]. */
export interface TrackingStatus {
  /** Number of sources under watch. */
  readonly attached: number;
  /** Number of sources that are not watched or not readable. Their last version stays. */
  readonly orphaned: number;
  /** The orphaned sources whose last read failed, with the reason. */
  readonly unreadable: readonly OrphanedFile[];
  /** Number of folders that are only polled, because the system has no free watches. */
  readonly sweptFolders: number;
  /** Number of sessions whose sources are still being reconciled. */
  readonly resuming: number;
}

interface Tracked {
  readonly source: FilesystemSource;
  readonly sessions: Set<SessionId>;
}

/** The state of a missing file. It equals no existing file. */
const NOT_THERE: KnownContent = { size: -1, mtimeMs: -1 };

type KnownFrom<Kind extends SourceReading['kind']> = (
  reading: Extract<SourceReading, { kind: Kind }>,
) => KnownContent | undefined;
const ofBytes = ({ size, mtimeMs }: KnownContent): KnownContent => ({ size, mtimeMs });

/**
 * Returns the tracked state of a reading. Undefined if the reading created no version, so nothing
 * is tracked.
 */
const KNOWN: { readonly [Kind in SourceReading['kind']]: KnownFrom<Kind> } = {
  text: ofBytes,
  'large-text': ofBytes,
  binary: ofBytes,
  missing: () => NOT_THERE,
  unreachable: () => undefined,
  'not-regular': () => undefined,
};

/** Maximum number of settled changes that wait for one transaction. */
const CHANGES_AT_ONCE = 256;

/**
 * The file trackers of a client [§5.8], shared by all its sessions. They watch every source that a
 * session has read, never stubs (decision C11). A change only adds a version; no session's sets
 * change [§5.6]. Keeps no process alive. The watch library is loaded with the first source.
 */
export class SourceTracking {
  readonly #environment: IndexEnvironment;
  readonly #options: TrackingSettings;
  readonly #indexer: SourceIndexer;
  readonly #tracked = new Map<ObjectId, Tracked>();
  readonly #resumes = new Map<SessionId, SourceResume>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #deferred = new DeferredWork();
  #tracker: FileTracker | undefined;
  #closing: Promise<void> | undefined;

  constructor(environment: IndexEnvironment, options: TrackingSettings = {}) {
    this.#environment = environment;
    this.#options = options;
    this.#indexer = new SourceIndexer(environment, {
      // The tracker waits until the file is stable, and retries on failure.
      onPostponed: (source) => this.#tracker?.reportAgain(source),
      onReach: () => this.#touch(),
      editorOf: async (source) => this.#tracker?.editorOf(source),
    });
  }

  get status(): TrackingStatus {
    this.#deferred.flush();
    const all = [...this.#tracked];
    const unreadable = all.flatMap(([id]) => this.#indexer.orphaned(id) ?? []);
    const attached = all.filter(
      ([id, { source }]) => this.#tracker?.state(source) === 'attached' && !this.#indexer.orphaned(id),
    );
    const { sweptFolders = 0 } = this.#tracker?.status() ?? {};
    return {
      attached: attached.length,
      orphaned: all.length - attached.length,
      unreadable,
      sweptFolders,
      resuming: this.#resumes.size,
    };
  }

  /**
   * Tracks the files that a session's step has read. A file that has changed since is indexed
   * again. Returns at once.
   */
  follow(session: SessionId, files: readonly FileObservation[]): void {
    // The agent's response goes first.
    if (this.#closing === undefined) this.#deferred.add(() => this.#follow(session, files));
  }

  #follow(session: SessionId, files: readonly FileObservation[]): void {
    if (this.#closing !== undefined) return;
    const requests = files.flatMap((file): TrackRequest[] => {
      if (file.kind !== 'read') return [];
      const known = (KNOWN[file.reading.kind] as KnownFrom<SourceReading['kind']>)(file.reading as never);
      return known === undefined ? [] : [{ source: file.source, known }];
    });
    if (requests.length === 0) return;
    const fresh = requests.filter(({ source }) => this.#add(session, fileObjectId(source), source));
    const others = requests.filter((request) => !fresh.includes(request));
    this.#inBackground(
      nextTurn().then(() => this.#attach(fresh.filter(({ source }) => this.#tracked.has(fileObjectId(source))))),
    );
    for (const request of others) this.#inBackground(nextTurn().then(() => this.#recheck(request)));
  }

  /**
   * Announces a call that is recording its readings. Newer readings of these files wait until it
   * has ended.
   */
  recording(files: readonly Pick<KnownFile, 'source'>[], recorded: Promise<unknown>): void {
    this.#indexer.recording(files, recorded);
  }

  /** Stops tracking files that no other session has read, and stops a running resume. */
  leave(session: SessionId): void {
    this.#deferred.flush();
    this.#resumes.get(session)?.stop(new Error(`session ${session} is closed`));
    for (const [id, { source, sessions }] of this.#tracked) {
      if (!sessions.delete(session) || sessions.size > 0) continue;
      this.#tracked.delete(id);
      this.#indexer.forget(id);
      this.#tracker?.untrack(source);
    }
    this.#touch();
  }

  /**
   * Starts the resume of a reopened session [§3.6, steps 3 and 6]. It tracks the session's files
   * and indexes changes and deletions since the pause. `leave` stops it.
   */
  resume(session: SessionId, onProgress?: (done: number, total: number) => void): SourceResume {
    const resume = new SourceResume({
      filesOf: (ids) => (this.#closing === undefined ? filesToReconcile(this.#environment.metadata, ids) : []),
      indexChanges: (known, part) => this.#resume(session, known, part),
      ...defined({ onProgress }),
      onFailure: (error) => {
        if (this.#closing === undefined) this.#notice(`sources of session ${session} could not be checked`, error);
      },
      onEnd: () => {
        if (this.#resumes.get(session) === resume) this.#resumes.delete(session);
        this.#touch();
      },
    });
    this.#resumes.set(session, resume);
    this.#touch();
    return resume;
  }

  /** Stops all watching and reading. Running deliveries continue. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const resumes = [...this.#resumes.values()];
    for (const resume of resumes) resume.stop(new Error('the client is closed'));
    await this.#indexer.close();
    await this.#tracker?.close();
    await Promise.allSettled([...this.#running, ...resumes.map(({ ended }) => ended)]);
  }

  /** Watches before reading, so that no change is missed in between. */
  async #resume(session: SessionId, known: readonly KnownFile[], { signal, onProgress }: ResumePart): Promise<void> {
    const fresh = known.filter(({ id, source }) => this.#add(session, id, source));
    await this.#attach(fresh);
    await this.#indexer.reconcile(known, { signal, onProgress });
  }

  /** Starts tracking a source. Returns false if it was tracked already. */
  #add(session: SessionId, id: ObjectId, source: FilesystemSource): boolean {
    const tracked = this.#tracked.get(id);
    if (tracked === undefined) this.#tracked.set(id, { source, sessions: new Set([session]) });
    else tracked.sessions.add(session);
    return tracked === undefined;
  }

  async #attach(requests: readonly TrackRequest[]): Promise<void> {
    if (requests.length === 0 || this.#closing !== undefined) return;
    this.#tracker ??= new FileTracker(this.#environment.files.access, {
      concurrency: CHANGES_AT_ONCE,
      ...this.#options,
      onChange: (source, isStill) => this.#changed(source, isStill),
      onState: () => this.#touch(),
    });
    await this.#tracker.trackMany(requests);
    this.#touch();
  }

  async #changed(source: FilesystemSource, isStill: StillAtRest): Promise<void> {
    try {
      await this.#indexer.index(source, isStill);
    } catch (error) {
      // A closing client leaves the change to the next client.
      if (this.#closing === undefined) throw error;
    }
  }

  /**
   * Indexes a file again if a step recorded older content than the tracker's last change. A file
   * that is still being written settles first.
   */
  async #recheck({ source, known }: TrackRequest): Promise<void> {
    if (!this.#environment.files.access.mounts.isReachable(source.path, source.filesystemId)) return;
    if (known !== undefined && this.#tracker?.hasSeen(source, known) === true) return;
    const stamp = await stampOf(source.path);
    if (stamp === undefined) return;
    const { size, mtimeMs } = stamp.present ?? NOT_THERE;
    if (size !== known?.size || mtimeMs !== known.mtimeMs) this.#tracker?.reportAgain(source);
  }

  #inBackground(work: Promise<unknown>): void {
    const ended = work
      .catch((error: unknown) => this.#notice('a file that was read could not be tracked', error))
      .finally(() => this.#running.delete(ended));
    this.#running.add(ended);
  }

  #touch(): void {
    this.#options.onStatus?.();
  }

  #notice(what: string, error: unknown): void {
    this.#options.onNotice?.(`${what}: ${messageOf(error)}`);
  }
}
