import { PersistentList } from '../values/persistent-list.js';
import type { ObjectId } from './ids.js';
import type { Message, Turn } from './object-type.js';
import type { Step } from './step.js';

/** What a step brings into the chat; the rest of it is not held for as long as its turn runs. */
interface ChatEntry {
  readonly turn: number;
  readonly message: Message | undefined;
  readonly call: ObjectId | undefined;
  /** Of a message its step; of a call the step of the message that made it, where that is not the last one. */
  readonly step: number | undefined;
  /** The step itself. */
  readonly seq: number;
}

/** A chat under way: its closed turns, and an entry for each step of the running one, so that a long turn is not copied at every step. */
export interface ChatLog {
  readonly closed: PersistentList<Turn>;
  readonly running: PersistentList<ChatEntry>;
}

/** The chat of a session before its first message. */
export const NO_CHAT: ChatLog = { closed: PersistentList.from([]), running: PersistentList.from([]) };

/** Whether a message of the model says nothing: it carries calls, or was broken off. */
export const isSilent = ({ role, text }: Pick<Message, 'role' | 'text'>): boolean =>
  text === '' && (role === 'assistant' || role === 'model');

/** Whether calls join a message. */
const carries = (message: Message): boolean => message.role === 'assistant' || isSilent(message);

/** A message of the chat with the calls that joined it. */
export interface ChatRow {
  readonly message: Message;
  /** The step of the message; undefined where calls stand without one. */
  readonly seq: number | undefined;
  /** In call order, each with its step. */
  readonly calls: readonly { readonly id: ObjectId; readonly seq: number }[];
}

/**
 * The rows of one turn (decisions B6, G3), in time linear in its entries: a message is appended, a call joins the message that made it, else the last assistant
 * message. Tool calls belong to the assistant; over plain MCP its own words are not visible, so the message that carries them has none. A silent message
 * that was reported is one of its own.
 */
function rowsOf(entries: Iterable<ChatEntry>): readonly ChatRow[] {
  const rows: { readonly message: Message; readonly seq: number | undefined; readonly calls: { id: ObjectId; seq: number }[] }[] = [];
  const bySeq = new Map<number, (typeof rows)[number]>();
  for (const { message, call, step, seq } of entries) {
    if (message !== undefined) {
      const row = { message, seq, calls: (message.toolcall_refs ?? []).map((id) => ({ id, seq })) };
      rows.push(row);
      bySeq.set(seq, row);
    }
    if (call === undefined) continue;
    const own = step === undefined || message !== undefined ? undefined : bySeq.get(step);
    const last = rows.at(-1);
    if (own !== undefined) own.calls.push({ id: call, seq });
    else if (last !== undefined && carries(last.message)) last.calls.push({ id: call, seq });
    else rows.push({ message: { role: 'assistant', text: '' }, seq: undefined, calls: [{ id: call, seq }] });
  }
  return rows;
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

/** The rows that the steps of one turn make up: what the chat's messages of that turn are, with their steps. */
export const chatRows = (steps: readonly Step[]): readonly ChatRow[] => rowsOf(steps.map(entryOf));

/** The chat after one more step; the step is of the running turn or opens the next one. */
export function chatAfter({ closed, running }: ChatLog, step: Step): ChatLog {
  const last = running.last();
  const entry = entryOf(step);
  if (last === undefined || last.turn === step.turn) return { closed, running: running.concat([entry]) };
  return { closed: closed.concat([turnOf(last.turn, running)]), running: PersistentList.from([entry]) };
}

/** The chat after many more steps: the same as after each of them in turn, in a fraction of the time. */
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
 * Whether a call that comes now has to name the step of its message: one of the running turn that carries calls, behind which another message stands.
 */
export function isLeftBehind({ running }: ChatLog, step: number): boolean {
  const last = running.findLast(({ message }) => message !== undefined);
  if (last === undefined || last.step === step) return false;
  // Every step of the turn has its entry.
  const place = step - (running.first()?.seq ?? 0);
  const message = place < 0 ? undefined : running.get(place)?.message;
  return message !== undefined && carries(message);
}

/** The turn that is not closed; undefined before the first step. */
export function runningTurn({ running }: ChatLog): Turn | undefined {
  const last = running.last();
  return last === undefined ? undefined : turnOf(last.turn, running);
}

/** All turns with their messages (decision B6). */
export function turnsOf(log: ChatLog): readonly Turn[] {
  const running = runningTurn(log);
  return running === undefined ? log.closed.toArray() : [...log.closed, running];
}
