import { type ChatLog, chatAfter, chatAfterAll, NO_CHAT, turnsOf } from '../objects/chat-log.js';
import type { ObjectId, SessionId } from '../objects/ids.js';
import type { Turn } from '../objects/object-type.js';
import type { SessionSets, SetChanges } from '../objects/sets.js';
import type { Step, TurnRule } from '../objects/step.js';
import type { PersistentList } from '../values/persistent-list.js';
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
 * A session at one moment: the fold of its steps so far [§3, decision G3]. Immutable; made by `emptySession` and `applyStep` only.
 * `has`, `isActive`, `isPinned` and `isToolResult` take constant time; `sets`, `turns` and `window` are built when first asked for.
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
  /** The last step's number; 0 before the first. */
  get seq(): number {
    return this.folded.seq;
  }
  /** The running turn's number; 0 before the first. */
  get turn(): number {
    return this.folded.turn;
  }
  /** Moment of the last step, milliseconds since 1970; 0 before the first. */
  get lastAt(): number {
    return this.folded.lastAt;
  }
  /** The client's own id of the running turn, where its first call brought one (decision B7). */
  get turnRef(): string | undefined {
    return this.folded.opens?.ref;
  }
  /** The rule that began the running turn (decision B7); undefined before the first. */
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
  /** What each step brought into the chat, in their order. */
  get marks(): readonly ChatMark[] {
    this.#marks ??= this.folded.marks.toArray();
    return this.#marks;
  }
  /** What the steps behind one brought into the chat; takes as long as there are of them. */
  marksAfter(step: number): readonly ChatMark[] {
    const { marks } = this.folded;
    return marks.toArray(marks.findLastIndex(({ seq }) => seq <= step) + 1);
  }
  /** The chat as it is held: its closed turns shared with every earlier state. */
  get chat(): ChatLog {
    return this.folded.chat;
  }
  get indexSize(): number {
    return this.folded.sets.index.size;
  }
  /** The ids of the index after its first `count`, which no step removes or reorders. */
  indexAfter(count: number): Iterable<ObjectId> {
    return this.folded.sets.index.toArray(count);
  }
  get activeIds(): readonly ObjectId[] {
    return this.folded.sets.active.toArray();
  }
  get pinnedIds(): readonly ObjectId[] {
    return this.folded.sets.pinned.toArray();
  }

  /** Whether an object is in the session index. */
  has(id: ObjectId): boolean {
    return this.folded.sets.index.has(id);
  }
  isActive(id: ObjectId): boolean {
    return this.folded.sets.active.has(id);
  }
  isPinned(id: ObjectId): boolean {
    return this.folded.sets.pinned.has(id);
  }
  /** Whether an object is a tool call of this session. */
  isToolResult(id: ObjectId): boolean {
    return this.folded.sets.calls.has(id);
  }
  /** Active tool results that no pin protects, in the order in which they became so [§4.3]. */
  collapsible(): Iterable<ObjectId> {
    return this.folded.sets.loose;
  }
  /** The results that became fresh last in a turn, newest first. */
  newestResults(turn: number, count: number): readonly ObjectId[] {
    return newestResults(this.folded.results, turn, count);
  }

  /** The session after one more step; see `applyStep`. The last answer is kept: a step is planned and then made. */
  after(step: Step): SessionState {
    if (this.#next?.step !== step) this.#next = { step, state: this.#fold(step) };
    return this.#next.state;
  }

  /**
   * The session after a step that was planned from another one, from which it differs in what becomes active and inactive alone. The same as `after(step)`, which is kept for it.
   */
  afterTurnover(draft: Step, step: Step, changes: Pick<SetChanges, 'activate' | 'deactivate'>): SessionState {
    const { folded } = this.after(draft);
    const sets = setsAfter(folded.sets, { changes });
    this.#next = { step, state: new SessionState({ ...folded, sets }) };
    return this.#next.state;
  }

  /** The session after many more steps; see `applySteps`. */
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

/** The tool results that a step makes fresh. */
function freshResults({ call, fresh = [] }: Step, { calls }: LiveSets): readonly ObjectId[] {
  return [...(call === undefined ? [] : [call.id]), ...fresh].filter((id) => calls.has(id));
}

function requireNext(before: Place, step: Step): void {
  if (step.session !== before.id) {
    throw new SessionError('wrong-session', `step ${step.seq} belongs to session ${step.session}, not to ${before.id}`);
  }
  if (step.seq !== before.seq + 1) {
    throw new SessionError('sequence-gap', `session ${before.id} stands at step ${before.seq}; step ${step.seq} cannot follow`);
  }
  const opens = step.opens !== undefined;
  if (step.turn !== before.turn + (opens ? 1 : 0) || step.turn < 1) {
    throw new SessionError(
      'out-of-order',
      `step ${step.seq} of session ${before.id} ${opens ? 'opens' : 'continues'} turn ${step.turn}, after turn ${before.turn}`,
    );
  }
  if (!(step.at >= before.lastAt)) {
    throw new SessionError('out-of-order', `step ${step.seq} of session ${before.id} is dated ${step.at}, before ${before.lastAt}`);
  }
}

/** A session before its first step. */
export const emptySession = (id: SessionId): SessionState => SessionState.empty(id);

/**
 * Folds one step into a session [decision G3]. Neither copies nor changes the input; the cost does not grow with the session.
 * @throws {SessionError} `wrong-session`, `sequence-gap` (seq not the next one), `out-of-order` (turn or moment), `unknown-object`
 *   (invariants of D1)
 */
export const applyStep = (state: SessionState, step: Step): SessionState => state.after(step);

/**
 * Folds many steps into a session: the same as one after another, without a state for each. Throws as `applyStep`.
 */
export const applySteps = (state: SessionState, steps: readonly Step[]): SessionState =>
  steps.length === 0 ? state : state.afterAll(steps);
