import { quoted } from '../objects/errors.js';
import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import type { SessionState } from './session-state.js';

/** What an agent does to its sets [§3.3]. */
export type Verb = 'activate' | 'deactivate' | 'pin' | 'unpin';

/** What a verb does to one object, as far as the sets decide it (decisions D1-D3); what reading its source adds is not known here. */
export type SetOutcome =
  | 'done'
  | 'already-active'
  | 'already-pinned'
  | 'not-active'
  | 'not-pinned'
  | 'unknown-object'
  | 'infrastructure-object';

/** Whether an outcome counts as success. Activating what is active succeeds: it makes it fresh again (decision D4). */
export const SUCCEEDS: Readonly<Record<SetOutcome, boolean>> = {
  done: true,
  'already-active': true,
  'already-pinned': true,
  'not-active': false,
  'not-pinned': false,
  'unknown-object': false,
  'infrastructure-object': false,
};

const RULES: Readonly<Record<Verb, (state: SessionState, id: ObjectId) => SetOutcome>> = {
  activate: (state, id) => (state.isActive(id) ? 'already-active' : 'done'),
  deactivate: (state, id) => (state.isActive(id) ? 'done' : 'not-active'),
  pin: (state, id) => (state.isPinned(id) ? 'already-pinned' : 'done'),
  unpin: (state, id) => (state.isPinned(id) ? 'done' : 'not-pinned'),
};

/** The outcome of a verb on one object of a session. Pinning what is not active leaves it inactive; deactivating what is pinned is allowed. */
export function verbOutcome(state: SessionState, verb: Verb, id: ObjectId): SetOutcome {
  if (isInfrastructureId(id)) return 'infrastructure-object';
  return state.has(id) ? RULES[verb](state, id) : 'unknown-object';
}

const DONE: Readonly<Record<Verb, string>> = {
  activate: 'is now active',
  deactivate: 'is no longer active',
  pin: 'is now pinned',
  unpin: 'is no longer pinned',
};

const WORDS: Readonly<Record<SetOutcome, (verb: Verb) => string>> = {
  done: (verb) => DONE[verb],
  'already-active': () => 'is already active',
  'already-pinned': () => 'is already pinned',
  'not-active': () => 'is not active, so there is nothing to deactivate',
  'not-pinned': () => 'is not pinned, so there is nothing to unpin',
  'unknown-object': () => 'is not known to this session; use an id or a path from the pool',
  'infrastructure-object': (verb) => `is part of the session itself; only files and tool calls can be given to ${verb}`,
};

/** One line for the agent that says what became of a verb on one object, named as the agent named it. */
export function outcomeText(verb: Verb, reference: string, outcome: SetOutcome): string {
  return `${quoted(reference)} ${WORDS[outcome](verb)}`;
}
