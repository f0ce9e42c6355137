import type { Contract } from '../../cli/contract.js';

/** Amplifier's context manager over HTTP. */
export const AMPLIFIER: Contract = { http: async () => (await import('./http.js')).AMPLIFIER_HTTP };
