import { isInfrastructureId, type ObjectId } from '../objects/ids.js';
import type { SessionState } from './session-state.js';

/** The agent's changes of its sets [§3.3]. */
export const VERBS = ['activate', 'deactivate', 'pin', 'unpin'] as const;
export type Verb = (typeof VERBS)[number];

/** Returns whether a tool is a verb. */
export const isVerb = (tool: string | undefined): tool is Verb => VERBS.some((verb) => verb === tool);

/**
 * The effect of a verb on one object's sets (decisions D1 to D3). Failures to read the object's
 * source are not included.
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
