import type { Durability } from '../../journal/journal.js';
import type { PendingLimits } from '../../journal/record-progress.js';
import { type SessionId, sessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { DEFAULT_POLICY, type StepPolicy } from '../../session/step-policy.js';
import { type AskedBasis, ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { TextCache } from '../../store/texts.js';
import { NO_TELEMETRY, type Telemetry } from '../../telemetry/telemetry.js';
import { defined } from '../../values/defined.js';
import type { NodeAddress } from '../../xtdb/address.js';
import { XtdbClient } from '../../xtdb/xtdb-client.js';
import { ClientJournal } from '../delivery/client-journal.js';
import type { DeliveryGate } from '../delivery/delivery-gate.js';
import { Outbox, type OutboxStatus } from '../delivery/outbox.js';
import { PageKeeper } from '../delivery/page-keeper.js';
import { SharedWriter } from '../delivery/shared-writer.js';
import { SoleWriter } from '../delivery/writers.js';
import { FileAccess, type FileAccessOptions } from '../file-access.js';
import { KnownVersions } from '../optimistic/known-versions.js';
import { MetadataCache } from '../optimistic/metadata-cache.js';
import { TIME_LIMITS } from '../time-limits.js';
import { openTracking, type TrackingPublisher } from '../tracking/publish-tracking.js';
import type { TrackingOptions, TrackingStatus } from '../tracking/tracking.js';
import {
  type AssembleOptions,
  type AssembleSession,
  assembleAsOf,
  assembleAsSoleWriter,
  assembleSession,
  type SessionAssembly,
} from './assemble-session.js';
import { ContextSession } from './context-session.js';
import { type ForkPlace, forkAt, type MadeFork } from './fork-at.js';
import { newSessionId } from './new-session-id.js';
import {
  createSession,
  holderIn,
  type LeaseSettings,
  listSessions,
  lockSession,
  type OpenSessionOptions,
  openSession,
  type SessionSummary,
} from './open-session.js';
import type { SessionEnvironment } from './session-environment.js';
import { type BorrowedSession, SessionRegistry } from './session-registry.js';
import { requireRoots } from './session-roots.js';

/** What a client left behind when it closed. */
export interface CloseReport {
  /** Acknowledged steps that the database does not have yet; they stay in the journal and are delivered by the next client of the data folder. */
  readonly unflushed: number;
}

/** How a client is made. */
export interface ContextClientOptions extends FileAccessOptions {
  /** Where the database listens, or how to find out; asked for at the first read or write. */
  readonly address: NodeAddress | (() => Promise<NodeAddress>);
  readonly policy?: StepPolicy;
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  /**
   * Data folder for leases and the journal of acknowledged steps. Without one a session's writer is guarded in the database alone, and a step is
   * acknowledged when it is committed.
   */
  readonly dataDir?: string;
  /** False: no journal although there is a data folder, as for a database that forgets everything when it stops. */
  readonly journal?: boolean;
  /** What an acknowledged step survives: the death of every process (`process`, the default), or the loss of power too (`power`, a sync per step). */
  readonly durability?: Durability;
  /** How many steps, and bytes of them, may wait for the database before calls are refused; 10,000 and 256 MiB where absent. */
  readonly queue?: PendingLimits;
  /** Whether files that were read are watched [§5.8], and how; by default they are where there is a data folder, as in a process that lives long. */
  readonly track?: boolean | Omit<TrackingOptions, 'onNotice'>;
  /** Called with one line about what could not be read of a dead process's journal, or cannot be tracked. */
  readonly onNotice?: (line: string) => void;
  /** True: sessions that were worked with below folders which this client may not use are opened, too; their files there are still not shown. */
  readonly shareSessions?: boolean;
  /** What this process is called in the error of another one that asks for a session which is open here. */
  readonly what?: string;
  /**
   * True: nobody else writes what this client's sessions hold, as in a replay. Then contexts are assembled from what this process knows, as far as it
   * does, and without a journal steps are acknowledged before they are committed.
   */
  readonly soleWriter?: boolean;
  /** How much text a client keeps at hand, in UTF-16 units for each of two caches: recent versions, and texts by their hash; 8 Mi where absent. */
  readonly keptUnits?: number;
  /** Whom it tells what it does; nobody when absent. */
  readonly telemetry?: Telemetry;
  /** Milliseconds since 1970; the machine's clock when absent. */
  readonly clock?: () => number;
}

const WHAT = 'a program that uses Palimpsest';

/**
 * The context manager process [§5.1]: wraps an agent's tools, keeps its sessions, assembles its context. One client serves several sessions over one
 * database and one set of files. Whoever creates it closes it.
 */
export class ContextClient {
  readonly files: FileAccess;
  readonly store: ObjectStore;
  readonly #xtdb: XtdbClient;
  readonly #environment: SessionEnvironment;
  readonly #sessions = new SessionRegistry(
    (id: SessionId, options: OpenSessionOptions) => this.#open(id, options),
    // A person's session follows no files and leaves its roots as they are.
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
    const { telemetry = NO_TELEMETRY } = options;
    const xtdb = new XtdbClient(options.address, { telemetry });
    this.#xtdb = xtdb;
    this.#journal = journal;
    this.#lease = options.dataDir === undefined ? undefined : { dataDir: options.dataDir, what: options.what ?? WHAT };
    this.files = files;
    this.store = new ObjectStore(xtdb, new TextCache(options.keptUnits));
    const { store } = this;
    const metadata = new MetadataCache(files);
    const versions = new KnownVersions(metadata, options.keptUnits);
    const isSole = options.soleWriter === true;
    this.#assemble = isSole ? assembleAsSoleWriter : assembleSession;
    const writer = isSole ? new SoleWriter(store.writes, { pipelined: journal === undefined }) : new SharedWriter(store);
    const outbox = new Outbox({ store, metadata, versions, writer, journal, telemetry });
    this.#pages = new PageKeeper(store, outbox);
    const clock = options.clock ?? Date.now;
    const { track, dataDir, what = WHAT, onNotice } = options;
    const tracking = openTracking({ files, metadata, outbox, clock }, { dataDir, what, track, onNotice });
    this.#publisher = tracking.publisher;
    this.#environment = {
      store,
      files,
      metadata,
      versions,
      outbox,
      ...defined({ tracking: tracking.sources }),
      policy: options.policy ?? DEFAULT_POLICY,
      shareSessions: options.shareSessions ?? false,
      strict: options.strict ?? false,
      shortIds: options.shortIds ?? false,
      telemetry,
      clock,
    };
    this.#unwatch = telemetry.watch(() => ({ ...outbox.gauges(), 'palimpsest.sessions.open': this.#sessions.size }));
  }

  /**
   * Opens the roots, the mounts and, with a data folder, the journal, and takes over what dead processes left in it (decision F6); the
   * database is not asked for yet.
   * @throws {SourceError} for roots that do not exist
   * @throws {JournalError} for a folder that cannot be used
   */
  static async create(options: ContextClientOptions): Promise<ContextClient> {
    const files = await FileAccess.open(options);
    const { dataDir, what = WHAT, durability = 'process', onNotice = () => undefined, queue } = options;
    const kept = { what, durability, onNotice, ...defined({ limits: queue }) };
    const journal = dataDir === undefined || options.journal === false ? undefined : await ClientJournal.open({ dataDir, ...kept });
    const client = new ContextClient(files, journal, options);
    await client.#environment.outbox.adoptLeft();
    // What another process delivers just now would change what a sole writer decides by.
    if (options.soleWriter === true) await client.#environment.outbox.othersDelivered(TIME_LIMITS.delivery);
    return client;
  }

  /** Resolves when the database answers; throws XtdbError when it does not. */
  async ready(): Promise<void> {
    await this.#xtdb.status();
  }

  /**
   * Opens a session: the existing one of this id with its chat and sets, or a new one; without an id always a new one, which needs no database to begin.
   * Opening one that this client has open gives the same, unless it was lost meanwhile. A client that tracks files brings in what changed while the session was paused [§3.6], for at most a
   * second before the session is there, then in the background.
   * @throws {SessionError} `other-roots` – it was worked with below folders that are none of this client's; `lease-held` – names the process that has it
   * open, unless `takeOver` moves it here; `node-unavailable`; `closed`
   * @throws {XtdbError} when the database cannot be reached
   * @throws {DocumentError} `invalid-id`
   */
  async openSession(options: OpenSessionOptions = {}): Promise<ContextSession> {
    this.#requireOpen();
    return this.#sessions.open(this.#idOf(options), options);
  }

  /**
   * Opens a session as `openSession` does and shares it with everybody who borrows it: the last one to release it closes it. Rejects as `openSession`
   * does.
   */
  async borrowSession(options: OpenSessionOptions = {}): Promise<BorrowedSession<ContextSession>> {
    this.#requireOpen();
    return this.#sessions.borrow(this.#idOf(options), options);
  }

  /**
   * Forks a session and opens the fork (decision F2): a new session with the parent's chat, sets and prompt as they stood after step `at`, or at the moment that it
   * names (`turn:7`), by default after its last step. Both go on independently. What this client acknowledged for the parent is waited for.
   * @throws {SessionError} `other-roots`, `unknown-session`, `sequence-gap` for a step that the parent does not have, `turn-running` for the end of a turn that
   * may go on, `session-exists`, `node-unavailable`
   * @throws {HistoryError} `malformed-moment`, `beyond-end`, `not-yet`
   * @throws {XtdbError}
   */
  async forkSession(parent: string, options: { readonly at?: ForkPlace; readonly id?: string } = {}): Promise<ContextSession> {
    return this.openSession({ id: (await this.makeFork(parent, options)).id });
  }

  /** As `forkSession`, without opening the fork: where it begins. Throws as it does. */
  async makeFork(parent: string, options: { readonly at?: ForkPlace; readonly id?: string } = {}): Promise<MadeFork> {
    this.#requireOpen();
    const parentId = sessionId(parent);
    const id = this.#idOf(options);
    if (this.#sessions.has(id)) throw new SessionError('session-exists', `session ${id} is open already; choose another id for the fork`);
    if (!(await this.#environment.outbox.hasDelivered(parentId)))
      throw new SessionError('node-unavailable', `session ${parentId} has steps that the database lacks; fork it once it is back`);
    await this.requireRoots(parentId);
    return forkAt({ ...this.#environment, holder: (session) => this.#holder(session) }, parentId, { id, at: options.at });
  }

  /**
   * The store, once everything that this client has acknowledged, and all that dead processes of the data folder left, is in it (decisions F4, F6): what questions
   * about the past are asked of. What living processes have acknowledged is waited for, two seconds at most, unless `others` is false.
   * @throws {SessionError} `node-unavailable` – it takes longer than ten seconds
   */
  async delivered({ others = true }: { readonly others?: boolean } = {}): Promise<ObjectStore> {
    const { outbox } = this.#environment;
    await outbox.adoptLeft();
    if (!(await outbox.drained(undefined, TIME_LIMITS.delivery))) throw this.#behind();
    if (others && !(await outbox.othersDelivered(TIME_LIMITS.drain))) return this.store;
    if (!(await outbox.drained(undefined, TIME_LIMITS.delivery))) throw this.#behind();
    return this.store;
  }

  /** Whether another living process of the data folder has acknowledged something of a session that the database does not have yet. */
  isOnItsWay = async (session: string): Promise<boolean> => (await this.#journal?.othersHold(Date.now(), session as SessionId)) === true;

  /** The objects as they stood at a basis, the newest of everything if left out, with all that this client has acknowledged. Throws as `delivered`, and XtdbError. */
  async snapshot(basis: AskedBasis = {}): Promise<StoreSnapshot> {
    const store = await this.delivered();
    return Object.keys(basis).length === 0 ? store.latest() : store.asOf(basis);
  }

  /**
   * Waits until at most `most` acknowledged writes are on their way to the database: backpressure for a caller that writes faster than the database takes
   * it. `timeoutMs` is ten seconds if left out.
   * @throws {SessionError} `node-unavailable` – it took longer
   */
  async backpressure(most: number, timeoutMs: number = TIME_LIMITS.delivery): Promise<void> {
    if (!(await this.#environment.outbox.atMost(most, timeoutMs))) throw this.#behind();
  }

  /**
   * The sessions of the database that this client may open, as far as their records of roots tell, and those that are open here, the one that was worked with last first.
   * @throws {XtdbError}
   */
  async listSessions(): Promise<readonly SessionSummary[]> {
    const open = await this.#sessions.all();
    const { files, shareSessions } = this.#environment;
    return listSessions(
      await this.snapshot(),
      open.map(({ state }) => state),
      ({ roots = [] }) => shareSessions || roots.every((root) => files.shows(root)),
    );
  }

  /**
   * The context of any session as it stood at a basis, rebuilt from the database alone: the same bytes as then (decision E7). Take the basis from an
   * assembly's record. Undefined when the session did not exist at that basis.
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
   * Refuses a session that was worked with below folders which this client may not use, as the newest or a given snapshot has it.
   * @throws {SessionError} `other-roots`
   */
  async requireRoots(session: SessionId, snapshot?: StoreSnapshot): Promise<void> {
    await requireRoots(this.#environment, snapshot ?? (await this.store.latest()), session);
  }

  /** Closes one session and forgets it, so that opening it again reads it afresh. */
  closeSession(session: ContextSession): Promise<void> {
    return this.#sessions.close(session.id, session);
  }

  /** Whether sessions are opened that were worked with below other folders. */
  get sharesSessions(): boolean {
    return this.#environment.shareSessions;
  }

  /** Holds deliveries to the database back while a model waits: close it before a context is made for one. */
  get gate(): DeliveryGate {
    return this.#environment.outbox.gate;
  }

  /** The moment by this client's clock, milliseconds since 1970. */
  now(): number {
    return this.#environment.clock();
  }

  /** What waits for the database, and why. */
  get status(): OutboxStatus {
    return this.#environment.outbox.status;
  }

  /** What is tracked [§5.9]; undefined for a client that tracks nothing. */
  get tracking(): TrackingStatus | undefined {
    return this.#environment.tracking?.status;
  }

  /**
   * Closes every session, gives what is acknowledged at most five seconds to reach the database, closes journal and connections. What did not get there
   * stays in the journal for the next client; the report counts it. Idempotent.
   */
  close(): Promise<CloseReport> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #behind(): SessionError {
    const { waiting, outage } = this.#environment.outbox.status;
    const options = outage === undefined ? {} : { cause: outage };
    return new SessionError(
      'node-unavailable',
      `${waiting} acknowledged steps are not in the database yet, so its history is not complete; look at palimpsest doctor and ask again`,
      options,
    );
  }

  #requireOpen(): void {
    if (this.#closing !== undefined) throw new SessionError('closed', 'the client is closed; make a new one');
  }

  async #holder(session: SessionId): Promise<string | undefined> {
    if (this.#sessions.has(session)) return 'this process';
    return this.#lease === undefined ? undefined : holderIn(this.#lease.dataDir, session);
  }

  #idOf({ id }: Pick<OpenSessionOptions, 'id'>): SessionId {
    return id === undefined ? newSessionId(new Date(this.#environment.clock())) : sessionId(id);
  }

  async #open(id: SessionId, options: OpenSessionOptions): Promise<ContextSession> {
    const { outbox, tracking } = this.#environment;
    const { takeOver = false, asPerson = false, onProgress } = options;
    const isNew = options.id === undefined;
    // Before it is taken away from whoever has it.
    if (takeOver) await this.requireRoots(id);
    const lock = this.#lease === undefined ? undefined : await lockSession(this.#lease, id, takeOver);
    try {
      // What others acknowledged for this session, dead or alive, has to be in the database before it is read.
      const isThere = isNew || (await outbox.readies(id));
      if (!isThere) {
        throw new SessionError(
          'node-unavailable',
          `session ${id} has steps that the database does not have yet; palimpsest doctor says why, open it once they are there`,
        );
      }
      const parts = { lock, assemble: this.#assemble, isSecret: isNew, losses: isNew ? 0 : await outbox.losses() };
      if (isNew) return new ContextSession(this.#environment, await createSession(this.#environment, id), parts);
      const resume = asPerson ? undefined : tracking?.resume(id, onProgress);
      const loaded = await openSession(this.#environment, id, { asPerson, onLearned: (ids, objects) => resume?.take(ids, objects) });
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
