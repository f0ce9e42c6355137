import type { Contract } from '../../cli/contract.js';

/** The interface of reviewers. `program.ts` adds the commands: a question loads only them. */
export const REVIEW: Contract = {
  http: async () => (await import('./review-http.js')).REVIEW_HTTP,
};
