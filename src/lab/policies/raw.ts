import type { Timeline } from '../timeline/timeline.js';
import { type ContextPolicy, type PolicyRequest, wholeParts } from './policy.js';

/**
 * The baseline: appends every message, call and result and never changes them. It is valid only
 * while its requests fit the model's window.
 */
export const raw: ContextPolicy = {
  name: 'raw',
  family: 'raw',
  kind: 'baseline',
  source: 'none',
  fidelity: 'exact',
  about:
    'Everything stays: a request is the previous one and all that came since. Compactions of the recorded program ' +
    'are ignored. Costs are compared with it only up to the call whose request no longer fits the window.',
  reach: 'none',
  guide: 0,
  *requests({ calls }: Timeline): Iterable<PolicyRequest> {
    for (const call of calls) yield { parts: wholeParts(call) };
  },
};
