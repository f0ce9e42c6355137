import { isDeeperThan } from '../../values/json-depth.js';

const DEEPEST = 200;
const MARK = /["{}[\],]/g;

/** An object or list that is open while a text is walked through. */
interface OpenValue {
  /** The keys seen of an object; undefined of a list. */
  readonly keys: Set<string> | undefined;
  /** Whether the next string is a key. */
  expectsKey: boolean;
}

/** Where the text that begins with the quote at `from` ends, behind its closing quote. */
function endOfText(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** The first key that an object of a valid JSON text holds twice; undefined where none does. */
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

/** What a JSON text says, or why it cannot be taken: it is none, names a key twice, or nests more levels than are read. */
export type StrictJson = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly reason: string };

/** Reads a JSON text that other programs must read the same way: a key that stands twice in an object is refused, not decided; so is what nests deeper than 200 levels, or `deepest`. */
export function strictJson(text: string, { deepest = DEEPEST }: { readonly deepest?: number } = {}): StrictJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, reason: 'it is no JSON' };
  }
  if (isDeeperThan(value, deepest)) return { ok: false, reason: `it nests deeper than ${deepest} levels` };
  const key = repeatedKey(text);
  return key === undefined ? { ok: true, value } : { ok: false, reason: `the key ${JSON.stringify(key)} stands twice in one object` };
}
