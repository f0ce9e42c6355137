import type { Contract } from '../cli/contract.js';

/** The contract for harnesses: operations on sessions that they open, report to and read. */
export const HARNESS: Contract = {
  http: async () => (await import('./http/harness-http.js')).HARNESS_HTTP,
};
