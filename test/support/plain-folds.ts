import { DocumentError, quoted } from '../../src/objects/errors.js';
import type { ObjectId } from '../../src/objects/ids.js';
import type { Message, Turn } from '../../src/objects/object-type.js';
import type { SessionSets, SetChanges } from '../../src/objects/sets.js';
import type { Step } from '../../src/objects/step.js';

function changed(
  set: readonly ObjectId[],
  remove: readonly ObjectId[] | undefined,
  add: readonly ObjectId[] | undefined,
): readonly ObjectId[] {
  const kept = remove === undefined || remove.length === 0 ? set : set.filter((id) => !remove.includes(id));
  if (add === undefined || add.length === 0) return kept;
  const known = new Set(kept);
  const fresh = [...new Set(add)].filter((id) => !known.has(id));
  return fresh.length === 0 ? kept : [...kept, ...fresh];
}

/**
 * Returns sets after one step's changes. Written plainly, as the reference for the product's linear
 * fold.
 */
export function applyChanges(sets: SessionSets, changes: SetChanges): SessionSets {
  const index = changed(sets.index, undefined, changes.index);
  const active = changed(sets.active, changes.deactivate, changes.activate);
  const pinned = changed(sets.pinned, changes.unpin, changes.pin);
  if (changes.activate !== undefined || changes.pin !== undefined) {
    const known = new Set(index);
    for (const id of [...(changes.activate ?? []), ...(changes.pin ?? [])]) {
      if (!known.has(id))
        throw new DocumentError(
          'invalid-value',
          `${quoted(id)} would become active or pinned without being in the session index`,
        );
    }
  }
  return { index, active, pinned };
}

function withCall(messages: readonly Message[], call: ObjectId): readonly Message[] {
  const last = messages.at(-1);
  // Tool calls belong to the assistant. Plain MCP hides its words, so the message that carries them
  // is empty.
  if (last?.role !== 'assistant') return [...messages, { role: 'assistant', text: '', toolcall_refs: [call] }];
  return [...messages.slice(0, -1), { ...last, toolcall_refs: [...(last.toolcall_refs ?? []), call] }];
}

/**
 * Returns the turns of a chat after one more step. Written plainly, as the reference for the
 * product's linear fold.
 */
export function withStep(turns: readonly Turn[], step: Step): readonly Turn[] {
  const running = turns.length === step.turn ? turns.at(-1) : undefined;
  let messages = running?.messages ?? [];
  if (step.message !== undefined) messages = [...messages, step.message];
  if (step.call !== undefined) messages = withCall(messages, step.call.id);
  const closed = running === undefined ? turns : turns.slice(0, -1);
  return [...closed, { turn: step.turn, messages }];
}
