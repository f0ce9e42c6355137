import type { Contract } from '../../cli/contract.js';

/** The interface of reviewers. `program.ts` adds its commands, which need not load this module. */
export const REVIEW: Contract = {
  http: async () => (await import('./review-http.js')).REVIEW_HTTP,
};
