import { BUNDLE } from './bundle/contract.js';
import type { Contract } from './cli/contract.js';
import { AGENT_CONTEXT } from './contracts/agent-context/contract.js';
import { AMPLIFIER } from './contracts/amplifier/contract.js';
import { ATIF } from './contracts/atif/contract.js';
import { CORTEXFS } from './contracts/cortexfs/contract.js';
import { PROJECTION } from './contracts/projection/contract.js';
import { TYRUM } from './contracts/tyrum/contract.js';
import { HARNESS } from './harness/contract.js';
import { PAGE } from './page/server/contract.js';
import { RESTORE } from './restore/contract.js';
import { REVIEW } from './review/http/contract.js';

/**
 * The contracts of this program. Deleting a line and its folder removes a contract. `program.ts`
 * and `question-program.ts` pass the list to the commands.
 */
export const CONTRACTS: readonly Contract[] = [
  HARNESS,
  REVIEW,
  BUNDLE,
  PAGE,
  RESTORE,
  PROJECTION,
  AGENT_CONTEXT,
  AMPLIFIER,
  ATIF,
  CORTEXFS,
  TYRUM,
];
