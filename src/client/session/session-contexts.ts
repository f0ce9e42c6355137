import { GrowingContext, type GrowingRecord } from '../../assembly/growing-context.js';
import { RENDERERS } from '../../assembly/renderers.js';
import type { MountMapping } from '../../filesystem/access/mounts.js';
import type { AssemblyProof, Delivery, HandedList, SentProof } from '../../objects/assembly-proof.js';
import type { ContextRecord } from '../../objects/context-record.js';
import type { ObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { assemblyId } from '../../store/assemblies.js';
import { StoreError } from '../../store/errors.js';
import { defined } from '../../values/defined.js';
import { END_OF_TIME } from '../../xtdb/transactions.js';
import { requireLease } from '../delivery/plan-assembly.js';
import type { MarkedVersion } from '../optimistic/known-versions.js';
import { OptimisticView } from '../optimistic/optimistic-view.js';
import { maskedBody, maskedRecords } from '../record-mask.js';
import { TIME_LIMITS } from '../time-limits.js';
import { type AssembleSession, assembleOptimistically, renderGrowing } from './assemble-session.js';
import type { LoadedSession } from './open-session.js';
import type { AssembleOptions, SessionAssembly, SessionAssemblyRecord } from './session-assembly.js';
import type { SessionEnvironment } from './session-environment.js';

/** How a context is handed out. */
export interface DeliverOptions extends AssembleOptions {
  /**
   * How the context reaches its model. If set, the record is stored before the context is returned
   * (decision E7). If absent, no record is stored.
   */
  readonly deliver?: Delivery;
  /** The rendering to hand out and to record. Default: `text`. */
  readonly renderer?: 'text' | 'messages';
}

/** How a context was handed out. */
export interface HandedOut {
  readonly delivered: Delivery;
  /** The whole handed-out list, if the harness mixed the context with its own messages. */
  readonly handed?: HandedList;
}

/** The step and turn of a record. */
export interface RecordPlace {
  /** The last step before the answer. */
  readonly step: number;
  readonly turn: number;
}

/** A request that an agent built itself, and its place in the session. */
export interface SentContext extends RecordPlace {
  /** The body in pieces. Pieces that requests share are stored once. */
  readonly body: readonly string[];
  /** Time at which it went out, in milliseconds since 1970. */
  readonly at: number;
  readonly sent: SentProof;
}

/** A whole request, and its place if it is known. */
export interface PlacedRequest extends Omit<SentContext, keyof RecordPlace>, Partial<RecordPlace> {
  /** Number of messages in the request's history, for a request without a place. */
  readonly messages?: number;
}

/** The input of a request that an agent built itself: nothing of the session is rendered. */
const NOTHING_SHOWN = {
  systemPrompt: null,
  pool: [],
  turns: [],
  active: [],
  options: { strict: false, shortIds: false },
} as const;

/** Returns the stored proof of an assembly that is handed out at a given time (decision E7). */
function proofOf(
  record: SessionAssemblyRecord,
  { delivered, handed }: HandedOut,
  {
    mappings,
    folders,
    at,
  }: { readonly mappings: readonly MountMapping[]; readonly folders: AssemblyProof['folders']; readonly at: number },
): AssemblyProof {
  const { basis, aheadOf, blocks, delivered: _delivered, handed: _handed, sections, ...others } = record;
  // Without a read of the database, the basis is the transaction that the shown versions come from.
  const read = basis ?? (aheadOf === undefined ? undefined : { validTime: END_OF_TIME, txId: aheadOf });
  const mounts = mappings.map(({ agentPrefix, canonicalPrefix, filesystemId }) => ({
    agentPrefix,
    canonicalPrefix,
    filesystemId,
  }));
  return {
    ...others,
    sections: sections.map(({ name, chars, sha256 }) => ({ name, chars, sha256 })),
    blocks: blocks.length,
    basis: read?.txId === undefined ? null : { validTime: read.validTime.getTime(), txId: read.txId },
    ...(mounts.length === 0 ? {} : { mounts }),
    ...defined({ folders }),
    delivered,
    ...defined({ handed }),
    at,
  };
}

/** An optimistic view, and how to remove its listener. */
interface FollowedView {
  readonly view: OptimisticView;
  readonly stop: () => void;
}

/** The last context of a session, and the objects that changed since. */
interface GrowingView {
  readonly growing: GrowingContext;
  readonly changed: Set<ObjectId>;
  release(): void;
}

/** Assembles the contexts of one open session, and stores the records of those handed out. */
export class SessionContexts {
  readonly #environment: SessionEnvironment;
  readonly #loaded: () => LoadedSession;
  readonly #assemble: AssembleSession;
  /** Ids of the records stored at one step, to store each once. */
  #kept: { readonly step: number; readonly ids: Set<string> } = { step: -1, ids: new Set() };
  /** Created with the first optimistic context. */
  #followed: FollowedView | undefined;
  /** Created with the first context that is rendered from the previous one. */
  #growing: GrowingView | undefined;

  /** `loaded` returns the current session. */
  constructor(environment: SessionEnvironment, loaded: () => LoadedSession, assemble: AssembleSession) {
    this.#environment = environment;
    this.#assemble = assemble;
    this.#loaded = loaded;
  }

  /** Assembles the context of the current session [§4]. */
  assemble(options: AssembleOptions): Promise<SessionAssembly> {
    const facts = { 'gen_ai.conversation.id': this.#loaded().state.id };
    return this.#environment.telemetry.observe({ activity: 'assembly', facts }, () => this.#assembled(options));
  }

  async #assembled(options: AssembleOptions): Promise<SessionAssembly> {
    const environment = this.#environment;
    if (options.optimistic === true && environment.isStored) {
      this.#followed ??= this.#follow();
      const context = await this.#followed.view.context();
      if (context !== undefined) return assembleOptimistically(environment, this.#loaded(), { ...context, options });
    }
    return this.#assemble(environment, this.#loaded(), options);
  }

  /**
   * Renders the next model context with full ids from the previous one, and stores its record. Its
   * cost grows with the changes; the cost of `assemble` grows with the session. Use it only if no
   * other client writes the session, as in a replay.
   */
  async next(delivered: Delivery): Promise<GrowingRecord & { readonly record: SessionAssemblyRecord }> {
    const facts = { 'gen_ai.conversation.id': this.#loaded().state.id };
    const { metadata, strict, telemetry } = this.#environment;
    if (this.#growing === undefined) {
      const changed = new Set<ObjectId>();
      this.#growing = { growing: new GrowingContext(strict), changed, ...metadata.follow(changed) };
    }
    const view = this.#growing;
    const { record, bytes } = await telemetry.observe({ activity: 'assembly', facts }, () =>
      renderGrowing(this.#environment, this.#loaded(), view),
    );
    return { record: await this.deliver(record, { delivered }), bytes };
  }

  /** Stores the record of a handed-out context; see `ContextSession.deliver`. */
  deliver(record: SessionAssemblyRecord, how: HandedOut): Promise<SessionAssemblyRecord & HandedOut> {
    const { telemetry } = this.#environment;
    const facts = {
      'gen_ai.conversation.id': record.session,
      'palimpsest.step': record.step,
      'palimpsest.context.characters': record.chars,
      'palimpsest.context.local': record.basis === undefined,
    };
    telemetry.add('palimpsest.context.characters', record.chars);
    return telemetry.observe({ activity: 'handout', facts }, () => this.#deliver(record, how));
  }

  async #deliver(record: SessionAssemblyRecord, how: HandedOut): Promise<SessionAssemblyRecord & HandedOut> {
    const { clock, files, metadata, outbox, versions } = this.#environment;
    const { state, promptAt, lease } = this.#loaded();
    // A context must not predate its content.
    const at = Math.max(clock(), state.lastAt, promptAt);
    const folders = metadata.hidesAny(state.sets.index) ? files.folders : undefined;
    const assembly = proofOf(record, how, { mappings: files.access.mounts.mappings, folders, at });
    const id = assemblyId(assembly);
    if (this.#kept.step !== record.step) this.#kept = { step: record.step, ids: new Set() };
    if (!this.#kept.ids.has(id)) {
      const unkept = this.#unkept(record);
      const shown = unkept.flatMap(({ observed }) => observed ?? []);
      await outbox.keep({
        session: state.id,
        lease,
        files: [],
        heads: [],
        at,
        assembly,
        ...(shown.length === 0 ? {} : { shown }),
      });
      if (outbox.isDurable) for (const version of unkept) versions.carry(version);
      this.#kept.ids.add(id);
    }
    return { ...record, ...how };
  }

  /**
   * Stores a request that an agent built itself as the context at a step. Resolves when it is as
   * durable as a step. Storing the same request again changes nothing. `inOrder` runs work between
   * the session's steps. Steps and contexts continue while this waits for the database.
   *
   * Returns undefined and stores nothing if the body is not Unicode text, or if the database does
   * not have the steps in time. A later call may succeed. Rejects with JournalError.
   */
  async keepSent(
    { body, step, turn, at, sent }: SentContext,
    inOrder: (work: () => Promise<AssemblyProof>) => Promise<AssemblyProof>,
  ): Promise<AssemblyProof | undefined> {
    const { outbox, store } = this.#environment;
    const { id } = this.#loaded().state;
    if (!body.join('').isWellFormed()) return undefined;
    const stored = maskedBody(this.#environment.mask, body);
    // The basis of the context must contain the steps before it.
    if (!(await outbox.drained(id, TIME_LIMITS.delivery))) return undefined;
    const txId = await store.latestTransaction();
    if (txId === undefined) return undefined;
    const { record } = RENDERERS.sent.render(NOTHING_SHOWN, { layout: 'sent', tail: undefined, body: stored.join('') });
    const { blocks, sections, ...facts } = record;
    return inOrder(async () => {
      const { state, lease } = this.#loaded();
      const assembly: AssemblyProof = {
        ...facts,
        session: id,
        turn,
        step,
        sections,
        blocks: blocks.length,
        basis: { validTime: Math.max(at, state.lastAt), txId },
        delivered: 'gateway',
        sent,
        at,
      };
      await outbox.keep({ session: id, lease, files: [], heads: [], at, assembly, body: stored });
      return assembly;
    });
  }

  /**
   * Returns the shown file versions that no journal holds. They must survive this process, like the
   * record.
   */
  #unkept({ ahead = [] }: SessionAssemblyRecord): readonly MarkedVersion[] {
    const { versions } = this.#environment;
    return ahead.flatMap(({ id, object_hash }) => versions.unjournaled(id, object_hash) ?? []);
  }

  /**
   * Writes records of the session; see `ContextSession.keepRecords`. The caller must delay steps
   * until it resolves.
   */
  async keepRecords(
    records: readonly ContextRecord[],
    texts: readonly string[],
    requireWritable: () => void,
  ): Promise<void> {
    const { outbox, store, mask } = this.#environment;
    const { id } = this.#loaded().state;
    if (!(await outbox.drained(id, TIME_LIMITS.delivery)))
      throw new SessionError(
        'node-unavailable',
        `steps of session ${id} are not in the database yet; palimpsest doctor says why`,
      );
    // Throws if an acknowledged step could not be written.
    requireWritable();
    const { lease } = this.#loaded();
    try {
      const stored = maskedRecords(mask, records, texts);
      await store.putRecords(stored.records, { texts: stored.texts, lease });
    } catch (error) {
      if (error instanceof StoreError) await requireLease(await store.latest(), { session: id, lease });
      throw error;
    }
  }

  /**
   * Starts the check for other writers, so that the next optimistic context need not wait for it.
   */
  refresh(): void {
    this.#followed?.view.refresh();
  }

  /** Returns the database's last transaction, from a running refresh if there is one. */
  latest(): Promise<number | undefined> {
    return this.#followed?.view.latest() ?? this.#environment.store.latestTransaction();
  }

  /** Idempotent. */
  close(): void {
    this.#followed?.stop();
    this.#growing?.release();
  }

  #follow(): FollowedView {
    const { outbox, ...shared } = this.#environment;
    const view = new OptimisticView({
      ...shared,
      session: this.#loaded,
      isAway: () => outbox.status.outage !== undefined,
      stepsDelivered: (limitMs) => outbox.drained(this.#loaded().state.id, limitMs),
      filesDelivered: (limitMs) => outbox.filesDrained(limitMs),
    });
    return { view, stop: outbox.listen((writes, txId) => view.wrote(writes, txId)) };
  }
}
