import { isDeeperThan } from '../../../values/json-depth.js';

/** The deepest nesting that is read: no recording is nested deeper, and whatever walks what was read may recurse. */
export const MAX_DEPTH = 512;

/** The value of a JSON text; undefined where the text is not JSON, or nests deeper than is read. */
export function parseJson(text: string, deepest = MAX_DEPTH): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return deepest !== Number.POSITIVE_INFINITY && isDeeperThan(value, deepest) ? undefined : value;
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The position behind the string whose quote stands at `from`; undefined where the string is torn. */
function endOfString(text: string, from: number): number | undefined {
  for (let i = from + 1; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === BACKSLASH) i += 1;
    else if (char === QUOTE) return i + 1;
  }
  return undefined;
}

/** The position behind the object, list or string that begins at `from`; undefined where it is torn. Brackets are counted, not matched. */
export function endOfValue(text: string, from: number): number | undefined {
  let depth = 0;
  for (let i = from; i < text.length; i += 1) {
    const char = text[i];
    if (char === '"') {
      const end = endOfString(text, i);
      if (end === undefined) return undefined;
      i = end - 1;
    } else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    else continue;
    if (depth <= 0) return i + 1;
  }
  return undefined;
}
