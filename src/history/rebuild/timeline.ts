import type { DisplayPaths } from '../../assembly/metadata.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { AskedBasis, ObjectStore } from '../../store/object-store.js';
import type { VersionTimes } from '../../store/queries.js';
import { ofSession, storeOf } from '../../store/session-line.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { askOnce } from '../../values/ask-once.js';
import { defined } from '../../values/defined.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { XtdbError } from '../../xtdb/errors.js';
import { type TurnKinds, turnKinds, withoutBypassed } from './context-kind.js';
import { HistoryError } from './history-error.js';
import { formatMoment, type Moment, NOW } from './moment.js';
import { AssemblyRebuilder, type ContextStore } from './rebuild-assembly.js';
import { type TurnSpan, turnSpans } from './turn-spans.js';

/** When something is asked for: a moment, and either clock by itself. */
export interface When {
  readonly moment?: Moment | undefined;
  /** What was true then (decision F7). */
  readonly validTime?: Date | undefined;
  /** What the database knew after a transaction, or at a time. */
  readonly tx?: number | Date | undefined;
}

/** A place in a session that a moment names. */
export interface SessionPlace {
  readonly session: SessionId;
  /** The session that wrote the step; another one where a fork shares it. */
  readonly owner: SessionId;
  readonly turn: number;
  /** The last step that counts, from the beginning of the session. */
  readonly seq: number;
  /** Whether it is the last step of the session. */
  readonly isEnd: boolean;
}

/** A moment that was found: the objects as they stood then. */
export interface Point {
  readonly moment: Moment;
  readonly snapshot: StoreSnapshot;
  readonly basis: Basis;
  readonly place: SessionPlace | undefined;
}

function beyond(session: SessionId, what: string, last: number): HistoryError {
  const has = last === 0 ? 'it has none yet' : `its last one is ${last}`;
  return new HistoryError('beyond-end', `session ${session} has no ${what}: ${has}`);
}

function stepOf(
  session: SessionId,
  turns: readonly TurnSpan[],
  moment: Moment & { readonly kind: 'turn' | 'step' },
): Step {
  const last = turns.at(-1);
  if (moment.kind === 'step') {
    const step = turns.flatMap(({ steps }) => steps).find(({ seq }) => seq === moment.seq);
    if (step === undefined) throw beyond(session, `step ${moment.seq}`, last?.last ?? 0);
    return step;
  }
  const span = turns.find(({ turn }) => turn === moment.turn);
  if (span === undefined) throw beyond(session, `turn ${moment.turn}`, last?.turn ?? 0);
  const step = moment.step === undefined ? span.steps.at(-1) : span.steps[moment.step - 1];
  if (step === undefined) throw beyond(session, `turn ${span.turn} with a step ${moment.step}`, span.steps.length);
  return step;
}

/** Shows each file by its canonical path. */
const CANONICAL: DisplayPaths = { display: ({ path }) => path };

/**
 * What questions about the past are asked of: a store whose present is pinned once, and the way paths are shown in answers. Every moment is resolved
 * against that present, so the same question asked twice of one timeline has the same answer.
 */
export class Timeline {
  readonly #steps = new Map<SessionId, Promise<readonly Step[]>>();
  readonly #records = new Map<SessionId, Promise<readonly AssemblyProof[]>>();
  readonly #of = new Map<SessionId, Promise<Timeline>>();
  readonly #kinds = new Map<SessionId, Promise<TurnKinds>>();
  #rebuilder: AssemblyRebuilder | undefined;

  private constructor(
    readonly store: ObjectStore,
    /** How answers show the paths of files [§5.3]. */
    readonly paths: DisplayPaths,
    /** Everything that was known when the timeline was opened. */
    readonly present: StoreSnapshot,
  ) {}

  /**
   * Pins the present of a store: the newest of everything, also of what a clock that ran ahead has dated later than now. Paths are shown as `paths` says, as canonical paths if left out. A process that writes through a client of
   * its own passes what `ContextClient.delivered` gives.
   * @throws {XtdbError}
   */
  static async open(store: ObjectStore, paths: DisplayPaths = CANONICAL): Promise<Timeline> {
    return new Timeline(store, paths, await store.latest());
  }

  /** The timeline of one session: objects as it finds them, with the versions of files that an import keeps to it. The same one for every other session. */
  of(session: SessionId): Promise<Timeline> {
    return askOnce(this.#of, session, async () => {
      const present = await ofSession(this.present, session);
      return present === this.present ? this : new Timeline(this.store, this.paths, present);
    });
  }

  /** The same store at an earlier transaction: of what came later nothing is in any answer. Undefined for one that this timeline does not reach. */
  upTo(txId: number): Timeline | undefined {
    const present = this.present.earlier({ validTime: this.present.basis.validTime, txId });
    return present === undefined ? undefined : new Timeline(this.store, this.paths, present);
  }

  /** What a question before has read of a session; undefined where none has. A question that needs a few of these need not ask for them. */
  read(session: SessionId): {
    readonly steps: Promise<readonly Step[]> | undefined;
    readonly records: Promise<readonly AssemblyProof[]> | undefined;
  } {
    return { steps: this.#steps.get(session), records: this.#records.get(session) };
  }

  /** The steps of a session as they are known now; they never change. None for an unknown session. */
  steps(session: SessionId): Promise<readonly Step[]> {
    return askOnce(this.#steps, session, () => this.present.steps(session));
  }

  /** The records of the contexts that were handed out of a session, oldest first; not those in whose place the harness's own list went out. @throws {StoreError} `corrupt-part` */
  records(session: SessionId): Promise<readonly AssemblyProof[]> {
    return askOnce(this.#records, session, async () => {
      const [records, steps] = await Promise.all([this.present.assemblies(session), this.steps(session)]);
      return withoutBypassed(records, steps);
    });
  }

  /** Whether a session was imported from another program's files, so that its steps are what a transcript tells. */
  async isImported(session: SessionId): Promise<boolean> {
    return (await this.present.records(session, { kinds: ['import'], onDamaged: () => undefined })).length > 0;
  }

  /** What is known of the contexts of a session's turns (decision E12). A damaged record counts as none. */
  turnKinds(session: SessionId): Promise<TurnKinds> {
    return askOnce(this.#kinds, session, async () => {
      const [records, steps, isImported] = await Promise.all([
        this.records(session).catch(() => this.present.assemblies(session, { onDamaged: () => undefined })),
        this.steps(session),
        this.isImported(session),
      ]);
      return turnKinds({ records, steps, isImported });
    });
  }

  /** What contexts are read from. */
  get contexts(): ContextStore {
    return storeOf(this.store, this.present);
  }

  /** Makes contexts again for every question that is asked of this timeline; what it reads is kept. */
  get rebuilder(): AssemblyRebuilder {
    this.#rebuilder ??= new AssemblyRebuilder(this.contexts, this.present);
    return this.#rebuilder;
  }

  /** How many sessions something is kept of. */
  get sessionsKept(): number {
    return new Set([...this.#steps.keys(), ...this.#records.keys(), ...this.#kinds.keys()]).size;
  }

  async turns(session: SessionId): Promise<readonly TurnSpan[]> {
    return turnSpans(await this.steps(session));
  }

  /**
   * Finds a moment. Turns and steps are those of `session`; they are found with the transaction that wrote them and the time of their
   * acknowledgement, so that nothing that came later is in them. A time is one of valid time, with all that is known now.
   * @throws {HistoryError} `beyond-end`, `which-session`
   */
  async find(when: When, session: SessionId | undefined): Promise<Point> {
    const own = session === undefined ? this : await this.of(session);
    if (own !== this) return own.find(when, session);
    const moment = when.moment ?? NOW;
    const place = moment.kind === 'turn' || moment.kind === 'step' ? await this.#place(moment, session) : undefined;
    const asked: AskedBasis = { ...place?.basis, ...(await this.#clocks(moment, when)) };
    const snapshot = await this.#at(asked, place?.times.txId);
    const isPlaced = place !== undefined && snapshot.basis.txId === place.times.txId;
    const basis = isPlaced ? { ...snapshot.basis, txTime: place.times.txTime } : snapshot.basis;
    return { moment, snapshot, basis, place: place?.place };
  }

  async #place(
    moment: Moment & { readonly kind: 'turn' | 'step' },
    session: SessionId | undefined,
  ): Promise<{ readonly place: SessionPlace; readonly basis: AskedBasis; readonly times: VersionTimes }> {
    if (session === undefined) {
      throw new HistoryError(
        'which-session',
        `${formatMoment(moment)} is a place in a session: say in which one (--session)`,
      );
    }
    const turns = await this.turns(session);
    const step = stepOf(session, turns, moment);
    const times = (await this.present.stepTimes(session, [step.seq])).get(step.seq);
    if (times === undefined)
      throw new HistoryError('not-yet', `step ${step.seq} of session ${session} is not in the database yet`);
    return {
      place: { session, owner: times.owner, turn: step.turn, seq: step.seq, isEnd: step.seq === turns.at(-1)?.last },
      basis: { validTime: new Date(step.at), txId: times.txId },
      times,
    };
  }

  /** What the moment and the two clocks say; a clock that is set by itself wins. */
  async #clocks(moment: Moment, { validTime, tx }: When): Promise<AskedBasis> {
    const valid = validTime ?? (moment.kind === 'time' ? moment.time : undefined);
    const known = tx ?? (moment.kind === 'tx' ? moment.txId : undefined);
    const latest = this.present.basis.txId;
    if (typeof known === 'number' && known > (latest ?? -1)) {
      throw new HistoryError('beyond-end', `there is no transaction ${known} yet: the last one is ${latest ?? 'none'}`);
    }
    const clock = known instanceof Date ? { txTime: known } : { txId: known };
    return defined({ validTime: valid, ...clock });
  }

  /** The objects at a basis; that of a transaction whose times are known already needs no request. */
  async #at(asked: AskedBasis, known: number | undefined): Promise<StoreSnapshot> {
    if (Object.keys(asked).length === 0) return this.present;
    const { validTime: time, txId: tx, txTime } = asked;
    if (time !== undefined && tx !== undefined && tx === known && txTime === undefined) {
      const earlier = this.present.earlier({ validTime: time, txId: tx });
      if (earlier !== undefined) return earlier;
    }
    const { validTime, txId } = this.present.basis;
    // Whatever is left out is that of the present, so that all of one answer hangs together.
    const whole: AskedBasis = {
      validTime: asked.validTime ?? validTime,
      ...(asked.txTime !== undefined ? { txTime: asked.txTime } : { txId: asked.txId ?? txId ?? 0 }),
    };
    try {
      return await this.#asOf(whole);
    } catch (error) {
      if (!(error instanceof XtdbError) || error.code !== 'out-of-sync' || asked.txTime === undefined) throw error;
      // A time after the last transaction: everything that is known.
      const { txTime: _later, ...rest } = whole;
      return this.#asOf(txId === undefined ? rest : { ...rest, txId });
    }
  }

  async #asOf(basis: AskedBasis): Promise<StoreSnapshot> {
    const { names } = this.present.documents;
    const snapshot = await this.store.asOf(basis);
    return names === undefined ? snapshot : snapshot.named(names);
  }
}

/** How long a timeline is kept after a question, milliseconds: a reviewer looks at what was answered, and asks on. */
const KEPT_MS = 60_000;
/** Of more sessions than these nothing is kept. */
const MOST_SESSIONS = 8;

/**
 * The present of a store for many questions, one after the other. As long as nothing was written, they are asked of one timeline, which has read a session's steps and records already: what
 * a database value says never changes.
 */
export class PresentTimeline {
  #kept: Timeline | undefined;
  #forgetting: NodeJS.Timeout | undefined;

  /** A timeline of the newest transaction. Throws as `Timeline.open`. */
  async open(store: ObjectStore, paths: DisplayPaths): Promise<Timeline> {
    const opened = await Timeline.open(store, paths);
    const { txId } = opened.present.basis;
    const before = this.#kept;
    const isSame =
      txId !== undefined && before?.present.basis.txId === txId && before.store === store && before.paths === paths;
    const timeline = isSame && before.sessionsKept <= MOST_SESSIONS ? before : opened;
    this.#kept = timeline;
    clearTimeout(this.#forgetting);
    this.#forgetting = setTimeout(() => {
      this.#kept = undefined;
    }, KEPT_MS).unref();
    return timeline;
  }
}
