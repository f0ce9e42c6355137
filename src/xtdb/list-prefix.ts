/**
 * Watches a transit+json answer that is a list and arrives in pieces, until its first `count` elements are complete.
 *
 * XTDB streams its transaction log without a limit of its own, and an element cannot be read by itself because transit refers back to names that
 * were written before. So the text is cut behind the last element wanted and its brackets are closed.
 *
 * An answer that is no list of collections is left to be read whole.
 *
 * @returns a function that is told each piece and answers with the shortened text as soon as there is enough
 */
export const takeListElements = (count: number): ((piece: string) => string | undefined) => {
  let text = '';
  let at = 0;
  let depth = 0;
  let inString = false;
  let complete = 0;
  return (piece) => {
    text += piece;
    if (!text.startsWith(LIST_HEAD.slice(0, text.length))) return undefined;
    for (; at < text.length; at += 1) {
      const char = text.charCodeAt(at);
      if (inString) {
        if (char === BACKSLASH) at += 1;
        else if (char === QUOTE) inString = false;
      } else if (char === QUOTE) inString = true;
      else if (char === OPEN || char === OPEN_MAP) depth += 1;
      else if (char === CLOSE || char === CLOSE_MAP) {
        depth -= 1;
        // An element ends where the depth returns to that of the list's inside.
        if (depth === 2) complete += 1;
        if (depth === 2 && complete === count) return `${text.slice(0, at + 1)}]]`;
      }
    }
    return undefined;
  };
};

const LIST_HEAD = '["~#list",[';
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x5b;
const CLOSE = 0x5d;
const OPEN_MAP = 0x7b;
const CLOSE_MAP = 0x7d;
