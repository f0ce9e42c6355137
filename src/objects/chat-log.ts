import { PersistentList } from '../values/persistent-collections.js';
import type { ObjectId } from './ids.js';
import type { Message, Turn } from './object-type.js';
import type { Step } from './step.js';

/**
 * The part of a step that the chat needs. The rest of the step is not retained while its turn runs.
 */
export interface ChatEntry {
  readonly turn: number;
  readonly message: Message | undefined;
  readonly call: ObjectId | undefined;
  /**
   * For a message, its step. For a call, the step of the message that made it, unless that is the
   * last message.
   */
  readonly step: number | undefined;
  /** The number of the step itself. */
  readonly seq: number;
}

/**
 * A running chat: its closed turns, and one entry per step of the running turn. A long turn is
 * therefore not copied at every step.
 */
export interface ChatLog {
  readonly closed: PersistentList<Turn>;
  readonly running: PersistentList<ChatEntry>;
}

/** The chat of a session before its first message. */
export const NO_CHAT: ChatLog = { closed: PersistentList.from([]), running: PersistentList.from([]) };

/** Returns whether a message of the model has no text: it carries calls, or was interrupted. */
export const isSilent = ({ role, text }: Pick<Message, 'role' | 'text'>): boolean =>
  text === '' && (role === 'assistant' || role === 'model');

/** Returns whether calls join a message. */
const carries = (message: Message): boolean => message.role === 'assistant' || isSilent(message);

/** A chat message with the calls that joined it. */
export interface ChatRow {
  readonly message: Message;
  /** The step of the message. Undefined for calls without a message. */
  readonly seq: number | undefined;
  /** In call order, each with its step. */
  readonly calls: readonly { readonly id: ObjectId; readonly seq: number }[];
}

/**
 * The rows of one turn (decisions B6, G3), built entry by entry. A message is appended. A call
 * joins the message that made it, or the last assistant message.
 *
 * Tool calls belong to the assistant. Over plain MCP, the model's own text is not visible, so the
 * message that carries the calls has no text. A reported message without text is a separate row.
 */
export class GrowingRows {
  readonly rows: {
    readonly message: Message;
    readonly seq: number | undefined;
    readonly calls: { id: ObjectId; seq: number }[];
  }[] = [];
  readonly #places = new Map<number, number>();

  /** Adds an entry. Returns the place of the first row that it changed, if any. */
  add({ message, call, step, seq }: ChatEntry): number | undefined {
    const { rows } = this;
    let changed: number | undefined;
    if (message !== undefined) {
      changed = rows.length;
      this.#places.set(seq, changed);
      rows.push({ message, seq, calls: (message.toolcall_refs ?? []).map((id) => ({ id, seq })) });
    }
    if (call === undefined) return changed;
    const own = step === undefined || message !== undefined ? undefined : this.#places.get(step);
    const last = rows.at(-1);
    const place = own ?? (last !== undefined && carries(last.message) ? rows.length - 1 : rows.length);
    if (place === rows.length) rows.push({ message: { role: 'assistant', text: '' }, seq: undefined, calls: [] });
    rows[place]?.calls.push({ id: call, seq });
    return Math.min(place, changed ?? place);
  }
}

/** Returns the rows of one turn, in time linear in its entries. */
function rowsOf(entries: Iterable<ChatEntry>): readonly ChatRow[] {
  const growing = new GrowingRows();
  for (const entry of entries) growing.add(entry);
  return growing.rows;
}

function turnOf(number: number, entries: Iterable<ChatEntry>): Turn {
  const messages = rowsOf(entries).map(({ message, calls }) =>
    calls.length === 0 ? message : { ...message, toolcall_refs: calls.map(({ id }) => id) },
  );
  return { turn: number, messages };
}

function entryOf({ turn, message, call, seq }: Step): ChatEntry {
  return { turn, message, call: call?.id, step: message === undefined ? call?.by : seq, seq };
}

/** Returns the chat rows of one turn's steps, with their step numbers. */
export const chatRows = (steps: readonly Step[]): readonly ChatRow[] => rowsOf(steps.map(entryOf));

/**
 * Returns the chat after one more step. The step belongs to the running turn or opens the next one.
 */
export function chatAfter({ closed, running }: ChatLog, step: Step): ChatLog {
  const last = running.last();
  const entry = entryOf(step);
  if (last === undefined || last.turn === step.turn) return { closed, running: running.concat([entry]) };
  return { closed: closed.concat([turnOf(last.turn, running)]), running: PersistentList.from([entry]) };
}

/**
 * Returns the chat after many more steps. The result equals repeated `chatAfter`, and is much
 * faster.
 */
export function chatAfterAll({ closed, running }: ChatLog, steps: readonly Step[]): ChatLog {
  const turns: Turn[] = [];
  let entries = [...running];
  for (const step of steps) {
    const last = entries.at(-1);
    if (last !== undefined && last.turn !== step.turn) {
      turns.push(turnOf(last.turn, entries));
      entries = [];
    }
    entries.push(entryOf(step));
  }
  return { closed: closed.concat(turns), running: PersistentList.from(entries) };
}

/**
 * Returns whether a new call must name the step of its message. True for a message of the running
 * turn that carries calls and is followed by another message.
 */
export function isLeftBehind({ running }: ChatLog, step: number): boolean {
  const last = running.findLast(({ message }) => message !== undefined);
  if (last === undefined || last.step === step) return false;
  // Every step of the turn has an entry, so the distance is the index.
  const place = step - (running.first()?.seq ?? 0);
  const message = place < 0 ? undefined : running.get(place)?.message;
  return message !== undefined && carries(message);
}

/** Returns the open turn. Undefined before the first step. */
export function runningTurn({ running }: ChatLog): Turn | undefined {
  const last = running.last();
  return last === undefined ? undefined : turnOf(last.turn, running);
}

/** Returns all turns with their messages (decision B6). */
export function turnsOf(log: ChatLog): readonly Turn[] {
  const running = runningTurn(log);
  return running === undefined ? log.closed.toArray() : [...log.closed, running];
}
