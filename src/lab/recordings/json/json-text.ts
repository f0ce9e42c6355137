import { isDeeperThan } from '../../../values/json-object.js';

/** Maximum nesting of a value. No recording is nested deeper, and recursive code needs a limit. */
export const MAX_DEPTH = 512;

/** Parses a JSON text. Undefined if it is not JSON or nests too deeply. */
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

/**
 * Returns the position after the string whose quote is at `from`. Undefined if the string has no
 * end.
 */
function endOfString(text: string, from: number): number | undefined {
  for (let i = from + 1; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === BACKSLASH) i += 1;
    else if (char === QUOTE) return i + 1;
  }
  return undefined;
}

/**
 * Returns the position after the object, list or string at `from`. Undefined if it has no end.
 * Brackets are only counted; their kinds are not compared.
 */
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
