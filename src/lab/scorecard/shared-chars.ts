import { commonLength } from '../../values/common-length.js';
import type { RequestPart } from '../policies/policy.js';

/** Returns the length in characters of the prefix that two requests share. */
export function sharedChars(before: readonly RequestPart[], now: readonly RequestPart[]): number {
  let chars = 0;
  for (let at = 0; at < now.length; at += 1) {
    const [old, part] = [before[at], now[at]];
    if (old === undefined || part === undefined) break;
    if (old === part || old.text === part.text) {
      chars += part.text.length;
      continue;
    }
    return chars + commonLength(old.text, part.text);
  }
  return chars;
}
