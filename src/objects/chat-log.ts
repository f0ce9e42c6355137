import { List } from 'immutable';
import type { ObjectId } from './ids.js';
import type { Message, Turn } from './object-type.js';
import type { Step } from './step.js';

/** What a step brings into the chat; the rest of it is not held for as long as its turn runs. */
interface ChatEntry {
  readonly turn: number;
  readonly message: Message | undefined;
  readonly call: ObjectId | undefined;
}

/** A chat under way: its closed turns, and an entry for each step of the running one, so that a long turn is not copied at every step. */
export interface ChatLog {
  readonly closed: List<Turn>;
  readonly running: List<ChatEntry>;
}

/** The chat of a session before its first message. */
export const NO_CHAT: ChatLog = { closed: List(), running: List() };

/**
 * The turn that the entries of one turn make up (decisions B6, G3), in time linear in them: a message is appended, a call joins the last assistant
 * message. Tool calls belong to the assistant; over plain MCP its own words are not visible, so the message that carries them has none.
 */
function turnOf(number: number, entries: Iterable<ChatEntry>): Turn {
  const rows: { readonly message: Message; readonly refs: ObjectId[] }[] = [];
  for (const { message, call } of entries) {
    if (message !== undefined) rows.push({ message, refs: [...(message.toolcall_refs ?? [])] });
    if (call === undefined) continue;
    if (rows.at(-1)?.message.role !== 'assistant') rows.push({ message: { role: 'assistant', text: '' }, refs: [] });
    rows.at(-1)?.refs.push(call);
  }
  const messages = rows.map(({ message, refs }) => (refs.length === 0 ? message : { ...message, toolcall_refs: refs }));
  return { turn: number, messages };
}

/** The chat after one more step; the step is of the running turn or opens the next one. */
export function chatAfter({ closed, running }: ChatLog, step: Step): ChatLog {
  const last = running.last();
  const entry: ChatEntry = { turn: step.turn, message: step.message, call: step.call?.id };
  if (last === undefined || last.turn === step.turn) return { closed, running: running.push(entry) };
  return { closed: closed.push(turnOf(last.turn, running)), running: List.of(entry) };
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
