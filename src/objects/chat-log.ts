import { List } from 'immutable';
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
}

/** A chat under way: its closed turns, and an entry for each step of the running one, so that a long turn is not copied at every step. */
export interface ChatLog {
  readonly closed: List<Turn>;
  readonly running: List<ChatEntry>;
}

/** The chat of a session before its first message. */
export const NO_CHAT: ChatLog = { closed: List(), running: List() };

/** Whether a message of the model says nothing: it carries calls, or was broken off. */
export const isSilent = ({ role, text }: Pick<Message, 'role' | 'text'>): boolean =>
  text === '' && (role === 'assistant' || role === 'model');

/** Whether calls join a message. */
const carries = (message: Message): boolean => message.role === 'assistant' || isSilent(message);

/**
 * The turn that the entries of one turn make up (decisions B6, G3), in time linear in them: a message is appended, a call joins the message that made it, else the last assistant
 * message. Tool calls belong to the assistant; over plain MCP its own words are not visible, so the message that carries them has none. A silent message
 * that was reported is one of its own.
 */
function turnOf(number: number, entries: Iterable<ChatEntry>): Turn {
  const rows: { readonly message: Message; readonly refs: ObjectId[]; readonly step?: number | undefined }[] = [];
  for (const { message, call, step } of entries) {
    if (message !== undefined) rows.push({ message, refs: [...(message.toolcall_refs ?? [])], step });
    if (call === undefined) continue;
    const own = step === undefined || message !== undefined ? undefined : rows.find((row) => row.step === step);
    const last = rows.at(-1);
    if (own !== undefined) own.refs.push(call);
    else if (last !== undefined && carries(last.message)) last.refs.push(call);
    else rows.push({ message: { role: 'assistant', text: '' }, refs: [call] });
  }
  const messages = rows.map(({ message, refs }) => (refs.length === 0 ? message : { ...message, toolcall_refs: refs }));
  return { turn: number, messages };
}

/** The chat after one more step; the step is of the running turn or opens the next one. */
export function chatAfter({ closed, running }: ChatLog, step: Step): ChatLog {
  const last = running.last();
  const { turn, message, call, seq } = step;
  const entry: ChatEntry = { turn, message, call: call?.id, step: message === undefined ? call?.by : seq };
  if (last === undefined || last.turn === turn) return { closed, running: running.push(entry) };
  return { closed: closed.push(turnOf(last.turn, running)), running: List.of(entry) };
}

/**
 * Whether a call that comes now has to name the step of its message: one of the running turn that carries calls, behind which another message stands.
 */
export function isLeftBehind({ running }: ChatLog, step: number): boolean {
  const last = running.findLast(({ message }) => message !== undefined);
  if (last === undefined || last.step === step) return false;
  return running.some((entry) => entry.message !== undefined && entry.step === step && carries(entry.message));
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
