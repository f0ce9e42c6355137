import { type ChatLog, chatAfter, chatAfterAll, NO_CHAT, turnsOf } from '../objects/chat-log.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { Turn } from '../objects/object-type.js';
import type { SessionSets, SetChanges } from '../objects/sets.js';
import type { Step, TurnRule } from '../objects/step.js';
import type { PersistentList } from '../values/persistent-collections.js';
import { SessionError } from './errors.js';
import {
  type ChatMark,
  type LiveSets,
  marksOfSteps,
  NO_LIVE_SETS,
  NO_MARKS,
  NO_RESULTS,
  newestResults,
  plainSets,
  type ResultWindow,
  setsAfter,
  windowAfter,
} from './session-fold.js';

interface Folded {
  readonly id: SessionId;
  readonly seq: number;
  readonly turn: number;
  readonly lastAt: number;
  readonly opens: Step['opens'];
  readonly sets: LiveSets;
  readonly results: ResultWindow;
  readonly chat: ChatLog;
  readonly marks: PersistentList<ChatMark>;
}

/**
 * A session at one moment: the fold of its steps so far [§3, decision G3]. Immutable; only
 * `emptySession` and `applyStep` create it. `has`, `isActive`, `isPinned` and `isToolResult` take
 * constant time. `sets`, `turns` and `marks` are built on first use.
 */
export class SessionState {
  private readonly folded: Folded;
  #sets: SessionSets | undefined;
  #turns: readonly Turn[] | undefined;
  #next: { readonly step: Step; readonly state: SessionState } | undefined;
  #marks: readonly ChatMark[] | undefined;

  private constructor(folded: Folded) {
    this.folded = folded;
  }

  static empty(id: SessionId): SessionState {
    const nothing = {
      seq: 0,
      turn: 0,
      lastAt: 0,
      opens: undefined,
      sets: NO_LIVE_SETS,
      results: NO_RESULTS,
      chat: NO_CHAT,
      marks: NO_MARKS,
    };
    return new SessionState({ id, ...nothing });
  }

  get id(): SessionId {
    return this.folded.id;
  }
  /** Number of the last step; 0 before the first. */
  get seq(): number {
    return this.folded.seq;
  }
  /** Number of the running turn; 0 before the first. */
  get turn(): number {
    return this.folded.turn;
  }
  /** Time of the last step, in milliseconds since 1970; 0 before the first. */
  get lastAt(): number {
    return this.folded.lastAt;
  }
  /** The client's id of the running turn, if its first call had one (decision B7). */
  get turnRef(): string | undefined {
    return this.folded.opens?.ref;
  }
  /** The rule that began the running turn (decision B7). Undefined before the first. */
  get turnRule(): TurnRule | undefined {
    return this.folded.opens?.rule;
  }
  /** Index, active and pinned set in insertion order [§3.1]. */
  get sets(): SessionSets {
    this.#sets ??= plainSets(this.folded.sets);
    return this.#sets;
  }
  /** The chat's turns with their messages (decision B6). */
  get turns(): readonly Turn[] {
    this.#turns ??= turnsOf(this.folded.chat);
    return this.#turns;
  }
  /** Each step's addition to the chat, in order. */
  get marks(): readonly ChatMark[] {
    this.#marks ??= this.folded.marks.toArray();
    return this.#marks;
  }
  /** Returns the chat additions after a step. The cost grows with their number. */
  marksAfter(step: number): readonly ChatMark[] {
    const { marks } = this.folded;
    return marks.toArray(marks.findLastIndex(({ seq }) => seq <= step) + 1);
  }
  /** The chat in its internal form, which shares closed turns with every earlier state. */
  get chat(): ChatLog {
    return this.folded.chat;
  }
  get indexSize(): number {
    return this.folded.sets.index.size;
  }
  /** Returns the index ids after the first `count`. No step removes or reorders ids. */
  indexAfter(count: number): Iterable<ObjectId> {
    return this.folded.sets.index.toArray(count);
  }
  get activeIds(): readonly ObjectId[] {
    return this.folded.sets.active.toArray();
  }
  get pinnedIds(): readonly ObjectId[] {
    return this.folded.sets.pinned.toArray();
  }

  /** Returns whether an object is in the session index. */
  has(id: ObjectId): boolean {
    return this.folded.sets.index.has(id);
  }
  isActive(id: ObjectId): boolean {
    return this.folded.sets.active.has(id);
  }
  isPinned(id: ObjectId): boolean {
    return this.folded.sets.pinned.has(id);
  }
  /** Returns whether an object is a tool call of this session. */
  isToolResult(id: ObjectId): boolean {
    return this.folded.sets.calls.has(id);
  }
  /** Returns the active tool results without a pin, in order of activation [§4.3]. */
  collapsible(): Iterable<ObjectId> {
    return this.folded.sets.loose;
  }
  /** Returns the latest fresh results of a turn, newest first. */
  newestResults(turn: number, count: number): readonly ObjectId[] {
    return newestResults(this.folded.results, turn, count);
  }

  /**
   * Returns the session after one more step; see `applyStep`. The last result is cached, because a
   * step is planned and then applied.
   */
  after(step: Step): SessionState {
    if (this.#next?.step !== step) this.#next = { step, state: this.#fold(step) };
    return this.#next.state;
  }

  /**
   * Returns the session after a step that differs from its draft only in activations and
   * deactivations. Equals `after(step)`, and fills its cache.
   */
  afterTurnover(draft: Step, step: Step, changes: Pick<SetChanges, 'activate' | 'deactivate'>): SessionState {
    const { folded } = this.after(draft);
    const sets = setsAfter(folded.sets, { changes });
    this.#next = { step, state: new SessionState({ ...folded, sets }) };
    return this.#next.state;
  }

  /** Returns the session after many more steps; see `applySteps`. */
  afterAll(steps: readonly Step[]): SessionState {
    const before = this.folded;
    let place: Place = before;
    let { opens } = before;
    let { sets, results } = before;
    for (const step of steps) {
      requireNext(place, step);
      sets = setsAfter(sets, step);
      results = windowAfter(results, step.turn, freshResults(step, sets));
      if (step.turn !== place.turn) opens = step.opens;
      place = placeOf(step);
    }
    const { seq, turn, lastAt } = place;
    return new SessionState({
      id: before.id,
      seq,
      turn,
      lastAt,
      opens,
      sets,
      results,
      chat: chatAfterAll(before.chat, steps),
      marks: before.marks.concat(marksOfSteps(steps)),
    });
  }

  #fold(step: Step): SessionState {
    const before = this.folded;
    requireNext(before, step);
    const sets = setsAfter(before.sets, step);
    return new SessionState({
      ...placeOf(step),
      opens: step.turn === before.turn ? before.opens : step.opens,
      sets,
      results: windowAfter(before.results, step.turn, freshResults(step, sets)),
      chat: chatAfter(before.chat, step),
      marks: before.marks.concat(marksOfSteps([step])),
    });
  }
}

type Place = Pick<Folded, 'id' | 'seq' | 'turn' | 'lastAt'>;

const placeOf = ({ session, seq, turn, at }: Step): Place => ({ id: session, seq, turn, lastAt: at });

/** Returns the tool results that a step makes fresh. */
function freshResults({ call, fresh = [] }: Step, { calls }: LiveSets): readonly ObjectId[] {
  return [...(call === undefined ? [] : [call.id]), ...fresh].filter((id) => calls.has(id));
}

function requireNext(before: Place, step: Step): void {
  if (step.session !== before.id) {
    throw new SessionError('wrong-session', `step ${step.seq} belongs to session ${step.session}, not to ${before.id}`);
  }
  if (step.seq !== before.seq + 1) {
    throw new SessionError(
      'sequence-gap',
      `session ${before.id} is at step ${before.seq}; step ${step.seq} cannot follow`,
    );
  }
  const opens = step.opens !== undefined;
  if (step.turn !== before.turn + (opens ? 1 : 0) || step.turn < 1) {
    throw new SessionError(
      'out-of-order',
      `step ${step.seq} of session ${before.id} ${opens ? 'opens' : 'continues'} turn ${step.turn}, ` +
        `after turn ${before.turn}`,
    );
  }
  if (!(step.at >= before.lastAt)) {
    throw new SessionError(
      'out-of-order',
      `step ${step.seq} of session ${before.id} is dated ${step.at}, before ${before.lastAt}`,
    );
  }
}

/** Returns a session before its first step. */
export const emptySession = (id: SessionId): SessionState => SessionState.empty(id);

/**
 * Folds one step into a session [decision G3]. Neither copies nor changes the input. The cost does
 * not grow with the session.
 * @throws {SessionError} `wrong-session`, `sequence-gap` (seq is not the next one), `out-of-order`
 *   (turn or time), `unknown-object` (invariants of D1)
 */
export const applyStep = (state: SessionState, step: Step): SessionState => state.after(step);

/**
 * Folds many steps into a session. Equals repeated `applyStep`, without the states in between.
 * Throws like `applyStep`.
 */
export const applySteps = (state: SessionState, steps: readonly Step[]): SessionState =>
  steps.length === 0 ? state : state.afterAll(steps);
