import { SearchIndex } from '../../history/search/search-index.js';
import { type SessionId, sessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { DEFAULT_POLICY } from '../../session/step-policy.js';
import type { AskedBasis, ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { NO_TELEMETRY } from '../../telemetry/telemetry.js';
import { defined } from '../../values/defined.js';
import { NO_NODE } from '../../xtdb/no-node.js';
import { XtdbClient } from '../../xtdb/xtdb-client.js';
import type { FileObservation } from '../decide-file.js';
import { ClientJournal } from '../delivery/client-journal.js';
import type { DeliveryGate } from '../delivery/delivery-gate.js';
import { openWriter } from '../delivery/open-writer.js';
import { Outbox, type OutboxStatus } from '../delivery/outbox.js';
import { PageKeeper } from '../delivery/page-keeper.js';
import { FileAccess } from '../file-access.js';
import { KnownVersions } from '../optimistic/known-versions.js';
import { MetadataCache } from '../optimistic/metadata-cache.js';
import { NO_MASK, type RecordMask } from '../record-mask.js';
import { Recovery } from '../recovery/recovery.js';
import { TIME_LIMITS } from '../time-limits.js';
import { openTracking, type TrackingPublisher } from '../tracking/publish-tracking.js';
import type { TrackingStatus } from '../tracking/tracking.js';
import { type AssembleSession, assembleAsOf, assembleAsSoleWriter, assembleSession } from './assemble-session.js';
import type { CloseReport, ContextClientOptions } from './client-options.js';
import { clientStore } from './client-store.js';
import { ContextSession } from './context-session.js';
import { type ForkPlace, forkAt, type MadeFork } from './fork-at.js';
import { maskedFiles } from './masked-step.js';
import { newSessionId } from './new-session-id.js';
import {
  createSession,
  listSessions,
  type OpenSessionOptions,
  openSession,
  type SessionSummary,
} from './open-session.js';
import type { AssembleOptions, SessionAssembly } from './session-assembly.js';
import type { SessionEnvironment } from './session-environment.js';
import { holderIn, type LeaseSettings, lockSession, requireLock } from './session-lease.js';
import { type BorrowedSession, SessionRegistry } from './session-registry.js';
import { requireRoots } from './session-roots.js';
import { ViewedSession } from './viewed-session.js';

const WHAT = 'a program that uses Palimpsest';

/**
 * The context manager [§5.1]: wraps an agent's tools, keeps its sessions and assembles its
 * contexts. It serves several sessions over one database and one set of files. Close it at the end.
 *
 * @example
 * ```ts
 * const access = { filesystemId: filesystemId('laptop-1'), roots: ['.'], cwd: '.' };
 * const client = await ContextClient.create({ address, ...access });
 * const session = await client.openSession();
 * ```
 */
export class ContextClient {
  readonly files: FileAccess;
  readonly store: ObjectStore;
  /** Masks secrets in all that this client records. */
  readonly mask: RecordMask;
  /** The search index of its data folder, if it has one. */
  readonly searchIndex: SearchIndex | undefined;
  readonly #xtdb: XtdbClient;
  readonly #environment: SessionEnvironment;
  readonly #sessions = new SessionRegistry(
    (id: SessionId, options: OpenSessionOptions) => this.#open(id, options),
    // A session that a person opens tracks no files and gets no new roots.
    ({ asPerson = false }) => asPerson,
  );
  readonly #assemble: AssembleSession;
  readonly #lease: LeaseSettings | undefined;
  readonly #journal: ClientJournal | undefined;
  readonly #publisher: TrackingPublisher | undefined;
  readonly #pages: PageKeeper;
  readonly #unwatch: () => void;
  #closing: Promise<CloseReport> | undefined;

  private constructor(files: FileAccess, journal: ClientJournal | undefined, options: ContextClientOptions) {
    const { telemetry = NO_TELEMETRY, clock = Date.now, track, dataDir, what = WHAT, onNotice } = options;
    this.#xtdb = new XtdbClient(options.address, { telemetry });
    this.#journal = journal;
    this.#lease = dataDir === undefined ? undefined : { dataDir, what };
    this.searchIndex = SearchIndex.in(dataDir);
    this.files = files;
    this.mask = options.mask ?? NO_MASK;
    const store = clientStore(this.#xtdb, options);
    this.store = store;
    const metadata = new MetadataCache(files);
    const isStored = options.address !== NO_NODE;
    const versions = new KnownVersions(metadata, isStored ? options.keptUnits : Number.MAX_SAFE_INTEGER);
    const isSole = options.soleWriter === true;
    this.#assemble = isSole ? assembleAsSoleWriter : assembleSession;
    const writer = openWriter({ store, metadata, versions, files, isStored, isSole, journal });
    const masked = (read: readonly FileObservation[]): readonly FileObservation[] => maskedFiles(this.mask, read);
    const outbox = new Outbox({ store, metadata, versions, writer, journal, telemetry, masked });
    const recovery = new Recovery(outbox, { store, journal });
    this.#pages = new PageKeeper(store, outbox);
    const tracking = openTracking({ files, metadata, outbox, clock }, { dataDir, what, track, onNotice });
    this.#publisher = tracking.publisher;
    this.#environment = {
      store,
      files,
      metadata,
      versions,
      outbox,
      recovery,
      ...defined({ tracking: tracking.sources }),
      policy: options.policy ?? DEFAULT_POLICY,
      shareSessions: options.shareSessions ?? false,
      strict: options.strict ?? false,
      shortIds: options.shortIds ?? false,
      mask: this.mask,
      telemetry,
      clock,
      isSole,
      isStored,
    };
    this.#unwatch = telemetry.watch(() => ({ ...outbox.gauges(), 'palimpsest.sessions.open': this.#sessions.size }));
  }

  /**
   * Opens the roots, the mounts and, with a data folder, the journal. Adopts the journals of dead
   * processes (decision F6). Does not query the database yet.
   * @throws {SourceError} a root does not exist
   * @throws {JournalError} the data folder cannot be used
   */
  static async create(options: ContextClientOptions): Promise<ContextClient> {
    const files = await FileAccess.open(options);
    const { dataDir, what = WHAT, durability = 'process', onNotice = () => undefined, queue } = options;
    const kept = { what, durability, onNotice, ...defined({ limits: queue }) };
    const journal =
      dataDir === undefined || options.journal === false ? undefined : await ClientJournal.open({ dataDir, ...kept });
    const client = new ContextClient(files, journal, options);
    await client.#environment.recovery.adoptLeft();
    // Wait, because another process's delivery could change a sole writer's decisions.
    if (options.soleWriter === true) await client.#environment.recovery.othersDelivered(TIME_LIMITS.delivery);
    return client;
  }

  /** Resolves when the database answers. @throws {XtdbError} it does not answer */
  async ready(): Promise<void> {
    await this.#xtdb.status();
  }

  /**
   * Opens the session with this id, with its chat and sets, or creates it. Without an id, creates a
   * session, which needs no database. Returns the same object if the session is open here and not
   * lost. A client that tracks files also indexes changes made during the pause [§3.6]. It waits
   * for this at most a second; the rest follows in the background.
   * @throws {SessionError} `other-roots` – the session used folders outside this client's roots.
   * @throws {SessionError} `lease-held` – another process, which it names, has the session open,
   *   and `takeOver` is not set.
   * @throws {SessionError} `node-unavailable`, `closed`.
   * @throws {XtdbError} the database cannot be reached. @throws {DocumentError} `invalid-id`.
   */
  async openSession(options: OpenSessionOptions = {}): Promise<ContextSession> {
    this.#requireOpen();
    return this.#sessions.open(this.#idOf(options), options);
  }

  /** Opens a session like `openSession` for several borrowers. The last release closes it. */
  async borrowSession(options: OpenSessionOptions = {}): Promise<BorrowedSession<ContextSession>> {
    this.#requireOpen();
    return this.#sessions.borrow(this.#idOf(options), options);
  }

  /**
   * Forks a session and opens the fork (decision F2). It has the parent's chat, sets and prompt
   * after step `at` or at a moment such as `turn:7`. Default: the parent's last step. Waits for
   * this client's acknowledged writes to the parent.
   * @throws {SessionError} `sequence-gap` – the parent lacks the step; `turn-running`;
   *   `other-roots`, `unknown-session`, `session-exists`, `node-unavailable`.
   * @throws {HistoryError} `malformed-moment`, `beyond-end`, `not-yet`.
   * @throws {XtdbError}
   */
  async forkSession(
    parent: string,
    options: { readonly at?: ForkPlace; readonly id?: string } = {},
  ): Promise<ContextSession> {
    return this.openSession({ id: (await this.makeFork(parent, options)).id });
  }

  /** Forks like `forkSession` without opening the fork. Returns where it begins. */
  async makeFork(parent: string, options: { readonly at?: ForkPlace; readonly id?: string } = {}): Promise<MadeFork> {
    this.#requireOpen();
    const parentId = sessionId(parent);
    const id = this.#idOf(options);
    if (this.#sessions.has(id))
      throw new SessionError('session-exists', `session ${id} is open already; choose another id for the fork`);
    if (!(await this.#environment.recovery.hasDelivered(parentId)))
      throw new SessionError(
        'node-unavailable',
        `session ${parentId} has steps that the database lacks; fork it once it is back`,
      );
    await this.requireRoots(parentId);
    return forkAt({ ...this.#environment, holder: (session) => this.#holder(session) }, parentId, {
      id,
      at: options.at,
    });
  }

  /** Opens a session that another process writes, to answer its calls here; see `ViewedSession`. */
  view(session: SessionId): Promise<ViewedSession | undefined> {
    return ViewedSession.open(this.#environment, session);
  }

  /**
   * Returns the store for queries about the past. Waits until it has everything acknowledged by
   * this client and by dead processes of the data folder (decisions F4, F6). Also waits up to two
   * seconds for living processes, unless `others` is false.
   * @throws {SessionError} `node-unavailable` – it takes longer than ten seconds
   */
  async delivered({ others = true }: { readonly others?: boolean } = {}): Promise<ObjectStore> {
    const { outbox, recovery } = this.#environment;
    await recovery.adoptLeft();
    if (!(await outbox.drained(undefined, TIME_LIMITS.delivery))) throw this.#behind();
    if (others && !(await recovery.othersDelivered(TIME_LIMITS.drain))) return this.store;
    if (!(await outbox.drained(undefined, TIME_LIMITS.delivery))) throw this.#behind();
    return this.store;
  }

  /** Returns whether another living process of the data folder holds an undelivered record. */
  isOnItsWay = async (session: string): Promise<boolean> =>
    (await this.#journal?.othersHold(Date.now(), session as SessionId)) === true;

  /** Returns a snapshot of `delivered` at a basis. Default: the newest. Throws XtdbError, too. */
  async snapshot(basis: AskedBasis = {}): Promise<StoreSnapshot> {
    const store = await this.delivered();
    return Object.keys(basis).length === 0 ? store.latest() : store.asOf(basis);
  }

  /** Writes versions of files that no call read. Throws XtdbError. */
  async index(files: readonly FileObservation[]): Promise<void> {
    await this.#environment.outbox.index(files, this.now());
  }

  /**
   * Waits until at most `most` acknowledged writes are in delivery. It slows down a caller that
   * writes faster than the database. `timeoutMs` defaults to ten seconds.
   * @throws {SessionError} `node-unavailable` – it took longer
   */
  async backpressure(most: number, timeoutMs: number = TIME_LIMITS.delivery): Promise<void> {
    if (!(await this.#environment.outbox.atMost(most, timeoutMs))) throw this.#behind();
  }

  /**
   * Lists the stored sessions that this client may open by their recorded roots, and those open
   * here. The most recently active one comes first.
   * @throws {XtdbError}
   */
  async listSessions(): Promise<readonly SessionSummary[]> {
    const open = await this.#sessions.all();
    const { files, shareSessions } = this.#environment;
    return listSessions(
      await this.snapshot(),
      open.map(({ state }) => state),
      shareSessions ? undefined : ({ roots = [] }) => roots.every((root) => files.shows(root)),
    );
  }

  /**
   * Rebuilds the context of any session at a basis, from the database alone, with the same bytes as
   * then (decision E7). Returns undefined if the session did not exist at that basis.
   * @throws {SessionError} `other-roots`
   */
  async contextAsOf(
    session: SessionId,
    basis: { readonly validTime?: Date; readonly txId?: number },
    options: AssembleOptions = {},
  ): Promise<SessionAssembly | undefined> {
    await this.requireRoots(session);
    return assembleAsOf(this.#environment, { session, basis }, options);
  }

  /**
   * Rejects a session that used folders outside this client's roots, at the newest or a given
   * snapshot.
   * @throws {SessionError} `other-roots`
   */
  async requireRoots(session: SessionId, snapshot?: StoreSnapshot): Promise<void> {
    await requireRoots(this.#environment, snapshot ?? (await this.store.latest()), session);
  }

  /** Closes one session and removes it, so that the next opening reads it again. */
  closeSession(session: ContextSession): Promise<void> {
    return this.#sessions.close(session.id, session);
  }

  /** Whether sessions that used other folders can be opened. */
  get sharesSessions(): boolean {
    return this.#environment.shareSessions;
  }

  /** Delays deliveries while a model waits. Close the gate before you make a model's context. */
  get gate(): DeliveryGate {
    return this.#environment.outbox.gate;
  }

  /** Returns this client's time, in milliseconds since 1970. */
  now(): number {
    return this.#environment.clock();
  }

  /** The number of writes that wait for the database, and why they wait. */
  get status(): OutboxStatus {
    return this.#environment.outbox.status;
  }

  /** The tracked files [§5.9]. Undefined for a client without tracking. */
  get tracking(): TrackingStatus | undefined {
    return this.#environment.tracking?.status;
  }

  /**
   * Closes every session, waits up to five seconds for deliveries, and closes journal and
   * connections. The rest stays in the journal for the next client, and the report counts it.
   * Idempotent.
   */
  close(): Promise<CloseReport> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #behind(): SessionError {
    const { waiting, outage } = this.#environment.outbox.status;
    return new SessionError(
      'node-unavailable',
      `${waiting} acknowledged steps are not in the database yet, so the recorded history is not complete; ` +
        'run palimpsest doctor, then ask again',
      defined({ cause: outage }),
    );
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw new SessionError('closed', 'the client is closed; create a new one');
  }

  async #holder(session: SessionId): Promise<string | undefined> {
    if (this.#sessions.has(session)) return 'this process';
    return this.#lease === undefined ? undefined : holderIn(this.#lease.dataDir, session);
  }

  #idOf({ id }: Pick<OpenSessionOptions, 'id'>): SessionId {
    return id === undefined ? newSessionId(new Date(this.#environment.clock())) : sessionId(id);
  }

  async #open(id: SessionId, options: OpenSessionOptions): Promise<ContextSession> {
    const { recovery, tracking } = this.#environment;
    const { takeOver = false, asPerson = false, onProgress } = options;
    const isNew = options.id === undefined;
    if (takeOver) await this.requireRoots(id);
    const lock = this.#lease === undefined ? undefined : await lockSession(this.#lease, id, takeOver);
    try {
      // First store the session's records that other processes acknowledged, dead or alive.
      const isThere = isNew || (await recovery.readies(id));
      if (!isThere) {
        throw new SessionError(
          'node-unavailable',
          `session ${id} has steps that the database does not have yet; palimpsest doctor says why. ` +
            'Open it once they are there',
        );
      }
      const parts = { lock, assemble: this.#assemble, hasRandomId: isNew, losses: isNew ? 0 : await recovery.losses() };
      if (isNew) return new ContextSession(this.#environment, await createSession(this.#environment, id), parts);
      const resume = asPerson ? undefined : tracking?.resume(id, onProgress);
      const loaded = await openSession(this.#environment, id, {
        asPerson,
        onLearned: (ids) => resume?.take(ids),
        requireOurs: () => requireLock(lock, id),
      });
      this.#pages.keep(id, loaded.state.seq);
      await resume?.within(TIME_LIMITS.resume);
      return new ContextSession(this.#environment, loaded, parts);
    } catch (error) {
      tracking?.leave(id);
      lock?.release();
      throw error;
    }
  }

  async #close(): Promise<CloseReport> {
    const [closed] = await Promise.allSettled([this.#sessions.closeAll()]);
    await this.#environment.tracking?.close();
    await this.#publisher?.close();
    this.#unwatch();
    await this.#environment.outbox.drained(undefined, TIME_LIMITS.close);
    const stored = this.store.close();
    await this.#xtdb.close();
    await stored;
    const unflushed = this.#journal?.waiting ?? 0;
    await this.#journal?.close();
    if (closed.status === 'rejected') throw closed.reason;
    return { unflushed };
  }
}
