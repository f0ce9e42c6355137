import type { Contract } from '../../cli/contract.js';

/**
 * The interface of reviewers. It has no commands: `program.ts` adds them, so that a command need
 * not load this module.
 */
export const REVIEW: Contract = {
  http: async () => (await import('./review-http.js')).REVIEW_HTTP,
};
