import type { Timeline } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, type PolicyRequest, wholePart } from './policy.js';

/**
 * Appends every message, call and result and never changes them: a harness without context
 * management.
 */
export const raw: ContextPolicy = {
  name: 'raw',
  family: 'raw',
  about:
    'Everything stays: a request is the previous one and all that came since. Compactions of the recorded program ' +
    'are ignored.',
  reach: 'none',
  *requests({ calls }: Timeline): Iterable<PolicyRequest> {
    for (const call of calls) yield { parts: itemsOf(call).map(wholePart) };
  },
};
