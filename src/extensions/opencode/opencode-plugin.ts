import type { OpencodeHooks, OpencodeInput } from './opencode1-api.js';
import type { Cleanup, Opencode2Context } from './opencode2-api.js';

/**
 * The plugin for OpenCode 1 and 2. Version 1 calls only `server`, and version 2 only `setup`. Each
 * loads its own adapter, because neither version has the other's packages. Nothing here imports a
 * package of OpenCode.
 */
export const palimpsestForOpencode = {
  id: 'palimpsest',
  server: async (input: OpencodeInput): Promise<OpencodeHooks> =>
    (await import('./opencode1-plugin.js')).palimpsestForOpencode1(input, import.meta.url),
  setup: async (context: Opencode2Context): Promise<Cleanup> =>
    (await import('./opencode2-plugin.js')).palimpsestForOpencode2(context, import.meta.url),
};
