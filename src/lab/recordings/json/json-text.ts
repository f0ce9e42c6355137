import { isDeeperThan } from '../../../values/json-depth.js';

/** A JSON object whose fields are not checked yet. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether a value is a JSON object: neither a list nor null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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

/**
 * The complete fields of an object whose text may be torn at any place; a torn nested object has its own complete fields. Serves to recognise what a text is.
 * Undefined where the text does not begin like an object.
 */
export function readTornObject(text: string): JsonObject | undefined {
  const start = /^\s*\{/.exec(text);
  if (start === null) return undefined;
  const fields: Record<string, unknown> = {};
  const key = /\s*,?\s*("(?:[^"\\]|\\.)*")\s*:\s*/y;
  const scalar = /(?:true|false|null|-?[\d.eE+-]+)(?=\s*[,}])/y;
  let at = start[0].length;
  for (;;) {
    key.lastIndex = at;
    const name = key.exec(text);
    if (name?.[1] === undefined) return fields;
    const field = String(parseJson(name[1]));
    at = key.lastIndex;
    const opening = text[at];
    if (opening === '{' || opening === '[' || opening === '"') {
      const end = endOfValue(text, at);
      if (end === undefined) {
        if (opening === '{') fields[field] = readTornObject(text.slice(at)) ?? {};
        else fields[field] = opening === '[' ? [] : '';
        return fields;
      }
      fields[field] = parseJson(text.slice(at, end));
      at = end;
    } else {
      scalar.lastIndex = at;
      const value = scalar.exec(text);
      if (value === null) return fields;
      fields[field] = parseJson(value[0]);
      at = scalar.lastIndex;
    }
  }
}
