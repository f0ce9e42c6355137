import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import type { SessionState } from './session-state.js';

/** What an agent does to its sets [§3.3]. */
export type Verb = 'activate' | 'deactivate' | 'pin' | 'unpin';

/** What a verb does to one object, as far as the sets decide it (decisions D1 to D3); what reading its source adds is not known here. */
export type SetOutcome =
  | 'done'
  | 'already-active'
  | 'already-pinned'
  | 'not-active'
  | 'not-pinned'
  | 'unknown-object'
  | 'infrastructure-object';

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
