import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import type { SessionState } from './session-state.js';

/** An agent's change of its sets [§3.3]. */
export type Verb = 'activate' | 'deactivate' | 'pin' | 'unpin';

/**
 * The effect of a verb on one object's sets (decisions D1 to D3). The effect of reading its source
 * is not known here.
 */
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

/**
 * Returns the outcome of a verb on one object of a session. Pinning an inactive object leaves it
 * inactive. Deactivating a pinned object is allowed.
 */
export function verbOutcome(state: SessionState, verb: Verb, id: ObjectId): SetOutcome {
  if (isInfrastructureId(id)) return 'infrastructure-object';
  return state.has(id) ? RULES[verb](state, id) : 'unknown-object';
}
