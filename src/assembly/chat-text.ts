import type { Turn } from '../objects/object-type.js';
import { type AssemblyInput, type ChatEntry, callsOf, chatEntry, type Frame } from './layout.js';
import type { ObjectMetadata } from './metadata.js';
import { renderedValue } from './rendered-value.js';

/** Every line of a message in the chat: its text, where it has some, and its tool calls. The name stands in no line (decision E1). */
export function chatLines({ message, references }: ChatEntry): readonly string[] {
  return message.text === '' ? references : [`${renderedValue(message.role)}: ${message.text}`, ...references];
}

interface TurnText {
  readonly text: string;
  /** The tool calls whose lines stand in it. */
  readonly calls: readonly ObjectMetadata[];
}

/** Turns under full ids. A session keeps its closed turns as they are, and every context holds all of them. */
const known = new WeakMap<Turn, TurnText>();

function turnText(turn: Turn, frame: Frame, shortIds: boolean): string {
  const before = shortIds ? undefined : known.get(turn);
  if (before?.calls.every((call) => frame.pooled.get(call.id) === call)) return before.text;
  const { messages } = turn;
  const text = messages.flatMap((message) => chatLines(chatEntry(message, frame))).join('\n');
  if (!shortIds) known.set(turn, { text, calls: messages.flatMap((message) => callsOf(message, frame)) });
  return text;
}

/**
 * The chat of a context as text: the lines of every message, turn after turn. What a closed turn says is made once, not for each context of a long session.
 * Throws AssemblyError `unknown-object`.
 */
export function chatText({ turns, options }: AssemblyInput, frame: Frame): string {
  return turns
    .map((turn) => turnText(turn, frame, options.shortIds))
    .filter((text) => text !== '')
    .join('\n');
}
