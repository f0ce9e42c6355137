import { makerOf } from './strip-layout.js';
import type { Change, Strip } from './wire.js';
import { counted } from './words.js';

/** Formats the cause of a change. Names the model call that acted instead of its step. */
export function whyByCall(
  { why, step, actor }: Pick<Change, 'why' | 'step' | 'actor'>,
  strip: Pick<Strip, 'calls'>,
): string {
  const call = step === null || actor !== 'agent' ? '' : `, call ${counted(makerOf(strip, step))}`;
  return why.replace(/(?:,| at) step \d+$/, call);
}
