import { CANONICAL, type DisplayPaths } from '../../assembly/metadata.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { AskedBasis, ObjectStore } from '../../store/object-store.js';
import type { VersionTimes } from '../../store/queries.js';
import { ofSession, storeOf } from '../../store/session-line.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { askOnce } from '../../values/promises.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { XtdbError } from '../../xtdb/errors.js';
import { kindOfRecord, withoutBypassed, withoutKnownBytes } from './context-kind.js';
import { HistoryError } from './history-error.js';
import { formatMoment, type Moment, NOW, type When } from './moment.js';
import { AssemblyRebuilder, type ContextStore } from './rebuild-assembly.js';
import { type SessionRequest, sessionRequests } from './session-requests.js';
import { transcriptEntries } from './transcript-entries.js';
import { TranscriptReader } from './transcript-parts.js';
import { type TurnKinds, turnKinds } from './turn-kinds.js';
import { type TurnSpan, turnSpans } from './turn-spans.js';

/** A place in a session, named by a moment. */
export interface SessionPlace {
  readonly session: SessionId;
  /** The session that wrote the step. It is an ancestor if a fork shares the step. */
  readonly owner: SessionId;
  readonly turn: number;
  /** The last included step, counted from the beginning of the session. */
  readonly seq: number;
  /** Whether it is the last step of the session. */
  readonly isEnd: boolean;
}

/** A resolved moment with the objects at it. */
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

const noTransaction = (txId: number, latest: number | undefined): HistoryError =>
  new HistoryError('beyond-end', `there is no transaction ${txId} yet: the last one is ${latest ?? 'none'}`);

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
  if (step === undefined) throw beyond(session, `step ${moment.step} in turn ${span.turn}`, span.steps.length);
  return step;
}

/** The records of a session, and the error of the first damaged one. */
interface ReadRecords {
  readonly sent: readonly AssemblyProof[];
  readonly isTranscript: boolean;
  readonly damage: Error | undefined;
}

/**
 * Answers questions about the past from a store with a fixed newest state, its *present*, and a
 * display of paths. Every moment is resolved against that present, so a timeline always gives the
 * same answer to the same question.
 *
 * @example
 * ```ts
 * const timeline = await Timeline.open(store);
 * const { text } = await askContext(timeline, 'fix-cart@turn:7', {});
 * ```
 */
export class Timeline {
  readonly #steps = new Map<SessionId, Promise<readonly Step[]>>();
  readonly #records = new Map<SessionId, Promise<ReadRecords>>();
  readonly #of = new Map<SessionId, Promise<Timeline>>();
  readonly #requests = new Map<SessionId, Promise<readonly SessionRequest[]>>();
  readonly #transcripts = new Map<SessionId, Promise<TranscriptReader>>();
  readonly #kinds = new Map<SessionId, Promise<TurnKinds>>();
  #rebuilder: AssemblyRebuilder | undefined;

  private constructor(
    readonly store: ObjectStore,
    /** Shows the paths of files in answers [§5.3]. */
    readonly paths: DisplayPaths,
    /** The newest state when the timeline was opened. */
    readonly present: StoreSnapshot,
  ) {}

  /**
   * Opens a timeline at the newest state of a store, including valid times in the future from a
   * fast clock. `paths` displays paths, by default the canonical ones. A process that writes
   * through a client passes the result of `ContextClient.delivered` as `store`.
   *
   * @throws {XtdbError}
   */
  static async open(store: ObjectStore, paths: DisplayPaths = CANONICAL): Promise<Timeline> {
    return new Timeline(store, paths, await store.latest());
  }

  /**
   * Returns the timeline of one session, with the line of versions of its import. For a session
   * without such a line, returns this timeline.
   */
  of(session: SessionId): Promise<Timeline> {
    return askOnce(this.#of, session, async () => {
      const present = await ofSession(this.present, session);
      return present === this.present ? this : new Timeline(this.store, this.paths, present);
    });
  }

  /**
   * Returns a timeline of the same store at an earlier transaction. Undefined for a transaction
   * after this timeline's present.
   */
  upTo(txId: number): Timeline | undefined {
    const present = this.present.earlier({ validTime: this.present.basis.validTime, txId });
    return present === undefined ? undefined : new Timeline(this.store, this.paths, present);
  }

  /** Returns a timeline with the same present that displays files and calls in another way. */
  shownBy(paths: DisplayPaths): Timeline {
    return new Timeline(this.store, paths, this.present);
  }

  /**
   * Returns the steps and records of a session that earlier questions have read. A question that
   * needs few of them uses these, or reads only the few.
   */
  read(session: SessionId): {
    readonly steps: Promise<readonly Step[]> | undefined;
    readonly records: Promise<readonly AssemblyProof[]> | undefined;
  } {
    return { steps: this.#steps.get(session), records: this.#records.get(session)?.then(({ sent }) => sent) };
  }

  /** Returns the steps of a session. Empty for an unknown session. */
  steps(session: SessionId): Promise<readonly Step[]> {
    return askOnce(this.#steps, session, () => this.present.steps(session));
  }

  /**
   * Returns the records of sent requests, oldest first. Leaves out contexts that reached no model:
   * the contexts of a replay, and contexts that the harness replaced by its own list.
   *
   * @throws {StoreError} `corrupt-part`
   */
  async records(session: SessionId): Promise<readonly AssemblyProof[]> {
    const { sent, damage } = await this.#recordsOf(session);
    if (damage !== undefined) throw damage;
    return sent;
  }

  /**
   * Reads the records of a session once. Damaged records do not keep the others from being read.
   */
  #recordsOf(session: SessionId): Promise<ReadRecords> {
    return askOnce(this.#records, session, async () => {
      let damage: Error | undefined;
      const onDamaged = (error: Error): void => {
        damage ??= error;
      };
      const [all, steps, imports] = await Promise.all([
        this.present.assemblies(session, { onDamaged }),
        this.steps(session),
        this.present.records(session, { kinds: ['import'], onDamaged: () => undefined }),
      ]);
      const known = withoutKnownBytes(withoutBypassed(all, steps));
      return {
        sent: known.filter((record) => kindOfRecord(record) === 'sent'),
        isTranscript: imports.length > 0 || all.some((record) => kindOfRecord(record) === 'transcript'),
        damage,
      };
    });
  }

  /**
   * Returns whether an agent's own file is the source of a session: it was imported, opened,
   * replayed or watched.
   */
  async isTranscript(session: SessionId): Promise<boolean> {
    return (await this.#recordsOf(session)).isTranscript;
  }

  /**
   * Returns the requests of a session, one for each call of the model, oldest first. Requests that
   * only a transcript shows are derived from the steps. A damaged record counts as missing.
   */
  requests(session: SessionId): Promise<readonly SessionRequest[]> {
    return askOnce(this.#requests, session, async () => {
      const [{ sent, isTranscript }, steps] = await Promise.all([this.#recordsOf(session), this.steps(session)]);
      return sessionRequests({ records: sent, steps, isTranscript });
    });
  }

  /** Returns a reader of the requests that a session's transcript shows. */
  transcript(session: SessionId): Promise<TranscriptReader> {
    return askOnce(
      this.#transcripts,
      session,
      async () => new TranscriptReader(this.present, session, transcriptEntries(await this.steps(session))),
    );
  }

  /** Returns the kinds of the contexts of a session's turns (decision E12). */
  turnKinds(session: SessionId): Promise<TurnKinds> {
    return askOnce(this.#kinds, session, async () =>
      turnKinds(await this.requests(session), await this.isTranscript(session)),
    );
  }

  /** The store that contexts are read from. */
  get contexts(): ContextStore {
    return storeOf(this.store, this.present);
  }

  /** The rebuilder that all questions of this timeline share, with its cache. */
  get rebuilder(): AssemblyRebuilder {
    this.#rebuilder ??= new AssemblyRebuilder(this.contexts, this.present);
    return this.#rebuilder;
  }

  /** The number of sessions with cached data. */
  get sessionsKept(): number {
    return new Set([...this.#steps.keys(), ...this.#records.keys(), ...this.#requests.keys()]).size;
  }

  async turns(session: SessionId): Promise<readonly TurnSpan[]> {
    return turnSpans(await this.steps(session));
  }

  /**
   * Resolves a moment. Turns and steps belong to `session`. They resolve to the step's transaction
   * and acknowledgement time, so later data is excluded. A time is a valid time, as the present
   * knows it.
   *
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
        `${formatMoment(moment)} is a place in a session: name the session (--session)`,
      );
    }
    const turns = await this.turns(session);
    const step = stepOf(session, turns, moment);
    const times = (await this.present.stepTimes(session, [step.seq])).get(step.seq);
    if (times === undefined)
      throw new HistoryError(
        'not-yet',
        `step ${step.seq} of session ${session} is not in the database yet; palimpsest doctor says why`,
      );
    return {
      place: { session, owner: times.owner, turn: step.turn, seq: step.seq, isEnd: step.seq === turns.at(-1)?.last },
      basis: { validTime: new Date(step.at), txId: times.txId },
      times,
    };
  }

  /** Combines the moment with the separately given clocks, which take precedence. */
  async #clocks(moment: Moment, { validTime, tx }: When): Promise<AskedBasis> {
    const valid = validTime ?? (moment.kind === 'time' ? moment.time : undefined);
    const known = tx ?? (moment.kind === 'tx' ? moment.txId : undefined);
    const latest = this.present.basis.txId;
    if (typeof known === 'number' && known > (latest ?? -1)) throw noTransaction(known, latest);
    const clock = known instanceof Date ? { txTime: known } : { txId: known };
    return defined({ validTime: valid, ...clock });
  }

  /**
   * Returns the objects at a basis. Needs no request if the basis is that of transaction `known`.
   */
  async #at(asked: AskedBasis, known: number | undefined): Promise<StoreSnapshot> {
    if (Object.keys(asked).length === 0) return this.present;
    const { validTime: time, txId: tx, txTime } = asked;
    if (time !== undefined && tx !== undefined && tx === known && txTime === undefined) {
      const earlier = this.present.earlier({ validTime: time, txId: tx });
      if (earlier !== undefined) return earlier;
    }
    const { validTime, txId } = this.present.basis;
    // A clock that is not given comes from the present, so that all parts of an answer fit
    // together.
    const whole: AskedBasis = {
      validTime: asked.validTime ?? validTime,
      ...(asked.txTime !== undefined ? { txTime: asked.txTime } : { txId: asked.txId ?? txId ?? 0 }),
    };
    try {
      return await this.#asOf(whole);
    } catch (error) {
      if (!(error instanceof XtdbError) || error.code !== 'out-of-sync' || asked.txTime === undefined) throw error;
      // A time after the last transaction stands for the newest state.
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

/**
 * Time that a timeline is cached after a question, in milliseconds. A reviewer reads an answer and
 * then asks the next question.
 */
const KEPT_MS = 60_000;
/** Maximum number of sessions with cached data. Beyond it the cache is dropped. */
const MOST_SESSIONS = 8;
/**
 * Maximum number of cached timelines at earlier transactions. A review page that follows a session
 * asks at a new transaction for each event.
 */
const MOST_PINNED = 4;

/**
 * Opens the timelines of a store for successive questions. While nothing is written, the questions
 * share one timeline with its cached steps and records.
 */
export class PresentTimeline {
  #kept: Timeline | undefined;
  /** Timelines at earlier transactions, by transaction. Their answers never change. */
  readonly #pinned = new Map<number, Timeline>();
  #forgetting: NodeJS.Timeout | undefined;

  /** Returns a timeline of the newest transaction. Throws the errors of `Timeline.open`. */
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
      this.#pinned.clear();
    }, KEPT_MS).unref();
    return timeline;
  }

  /**
   * Returns a timeline at an earlier transaction.
   *
   * @throws {HistoryError} `beyond-end` if there is no such transaction yet
   */
  at(present: Timeline, txId: number): Timeline {
    if (txId === present.present.basis.txId) return present;
    const known = this.#pinned.get(txId);
    const isSame = known !== undefined && known.store === present.store && known.paths === present.paths;
    const timeline = isSame && known.sessionsKept <= MOST_SESSIONS ? known : present.upTo(txId);
    if (timeline === undefined) throw noTransaction(txId, present.present.basis.txId);
    this.#pinned.delete(txId);
    this.#pinned.set(txId, timeline);
    for (const [oldest] of this.#pinned) if (this.#pinned.size > MOST_PINNED) this.#pinned.delete(oldest);
    return timeline;
  }
}
