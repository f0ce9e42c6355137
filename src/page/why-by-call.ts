import { makerOf } from './strip-layout.js';
import type { Change, Strip } from './wire.js';
import { counted } from './words.js';

/** Says why something changed, with the number of the call that acted in place of its step. */
export function whyByCall(
  { why, step, actor }: Pick<Change, 'why' | 'step' | 'actor'>,
  strip: Pick<Strip, 'calls'>,
): string {
  const call = step === null || actor !== 'agent' ? '' : `, call ${counted(makerOf(strip, step))}`;
  return why.replace(/(?:,| at) step \d+$/, call);
}
