import { isDeeperThan } from '../../values/json-object.js';

const DEEPEST = 200;
const MARK = /["{}[\],]/g;

/** An object or list that is still open during a scan. */
interface OpenValue {
  /** The keys seen in an object; undefined for a list. */
  readonly keys: Set<string> | undefined;
  /** True if the next string is a key. */
  expectsKey: boolean;
}

/** Returns the position after the closing quote of the string that opens at `from`. */
function endOfText(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/**
 * Returns the first key that an object of a valid JSON text repeats; undefined if there is none.
 */
function repeatedKey(text: string): string | undefined {
  const open: OpenValue[] = [];
  const marks = new RegExp(MARK);
  for (let mark = marks.exec(text); mark !== null; mark = marks.exec(text)) {
    const [token] = mark;
    const inside = open.at(-1);
    if (token === '{') open.push({ keys: new Set(), expectsKey: true });
    else if (token === '[') open.push({ keys: undefined, expectsKey: false });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',' && inside?.keys !== undefined) inside.expectsKey = true;
    else if (token === '"') {
      marks.lastIndex = endOfText(text, mark.index);
      if (inside?.keys === undefined || !inside.expectsKey) continue;
      const key = JSON.parse(text.slice(mark.index, marks.lastIndex)) as string;
      if (inside.keys.has(key)) return key;
      inside.keys.add(key);
      inside.expectsKey = false;
    }
  }
  return undefined;
}

/**
 * A parsed JSON value, or why the text is rejected: not JSON, a repeated key, or too many levels.
 */
export type StrictJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

/**
 * Parses JSON strictly, so that other programs read the same value. Rejects repeated keys, and
 * nesting over 200 levels or `deepest`.
 */
export function strictJson(text: string, { deepest = DEEPEST }: { readonly deepest?: number } = {}): StrictJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'it is not JSON' };
  }
  if (isDeeperThan(value, deepest)) return { ok: false, reason: `it nests deeper than ${deepest} levels` };
  const key = repeatedKey(text);
  return key === undefined
    ? { ok: true, value }
    : { ok: false, reason: `one object has the key ${JSON.stringify(key)} twice` };
}
