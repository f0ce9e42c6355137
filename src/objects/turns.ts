import type { ObjectId } from './ids.js';
import type { Message, Turn } from './object-type.js';
import type { Step } from './step.js';

function withCall(messages: readonly Message[], call: ObjectId): readonly Message[] {
  const last = messages.at(-1);
  // Tool calls belong to the assistant; over plain MCP its own words are not visible, so the message that carries them has none.
  if (last?.role !== 'assistant') return [...messages, { role: 'assistant', text: '', toolcall_refs: [call] }];
  return [...messages.slice(0, -1), { ...last, toolcall_refs: [...(last.toolcall_refs ?? []), call] }];
}

/**
 * The turns of a chat after one more step (decisions B6, G3): a message is appended, a call joins the last assistant message of its turn.
 * Only the running turn is copied; closed turns are shared with the input.
 */
export function withStep(turns: readonly Turn[], step: Step): readonly Turn[] {
  const running = turns.length === step.turn ? turns.at(-1) : undefined;
  let messages = running?.messages ?? [];
  if (step.message !== undefined) messages = [...messages, step.message];
  if (step.call !== undefined) messages = withCall(messages, step.call.id);
  const closed = running === undefined ? turns : turns.slice(0, -1);
  return [...closed, { turn: step.turn, messages }];
}
