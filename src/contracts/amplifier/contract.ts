import type { Contract } from '../../cli/contract.js';

/** Amplifier's context manager: operations over HTTP. */
export const AMPLIFIER: Contract = { http: async () => (await import('./http.js')).AMPLIFIER_HTTP };
