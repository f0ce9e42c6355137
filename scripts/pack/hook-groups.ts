/** The part of the program that `parcels.mjs` runs to write the hooks of a plug-in. */
export { hookGroups } from '../../src/agents/hooks/hook-entries.js';
