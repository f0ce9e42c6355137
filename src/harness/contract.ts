import type { Contract } from '../cli/contract.js';

/** The interface of harnesses: operations on the sessions that they open, report to and read. */
export const HARNESS: Contract = {
  http: async () => (await import('./http/harness-http.js')).HARNESS_HTTP,
};
