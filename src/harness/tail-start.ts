import { historyOf } from './history-item.js';
import type { ReportedMessage } from './message-schema.js';

/**
 * Where the running turn begins in a harness's list: at its last message of the user before which no call waits for its result. Everything from there on
 * has to stay as it is; everything before is closed. Undefined where there is none. Throws HarnessError `unknown-call`.
 */
export function tailStart(messages: readonly ReportedMessage[]): number | undefined {
  return historyOf(messages).settled.at(-1);
}
