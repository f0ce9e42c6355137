/** The place of a value in a JSON text, in UTF-16 units. */
export interface JsonPlace {
  readonly from: number;
  readonly to: number;
}

const SPACE = /[ \t\n\r]/;
const [QUOTE, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5b, 0x5d, 0x7b, 0x7d];

function afterSpace(text: string, at: number): number {
  let next = at;
  while (SPACE.test(text[next] ?? '')) next += 1;
  return next;
}

function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return at + 1;
  }
  return text.length;
}

/** Returns the end of the value that begins at an offset. */
function endOfValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return endOfString(text, from);
  if (first !== '{' && first !== '[') {
    const end = /[,\]}\s]/g;
    end.lastIndex = from;
    return end.exec(text)?.index ?? text.length;
  }
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at) - 1;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) depth += 1;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}

/** Returns the places of the values in the list that begins at an offset of a valid JSON text. */
export function listPlaces(text: string, from: number): readonly JsonPlace[] {
  const places: JsonPlace[] = [];
  let at = afterSpace(text, from + 1);
  while (at < text.length && text[at] !== ']') {
    const to = endOfValue(text, at);
    places.push({ from: at, to });
    at = afterSpace(text, to);
    if (text[at] === ',') at = afterSpace(text, at + 1);
  }
  return places;
}

/**
 * Returns the places of the members' values in the object that begins at an offset of a valid JSON
 * text. Leaves out a member that occurs twice, because readers disagree on which one counts.
 */
export function memberPlaces(text: string, from: number): ReadonlyMap<string, JsonPlace> {
  const found = new Map<string, JsonPlace>();
  const twice = new Set<string>();
  let at = afterSpace(text, from + 1);
  while (at < text.length && text[at] !== '}') {
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    const value = afterSpace(text, afterSpace(text, keyEnd) + 1);
    const to = endOfValue(text, value);
    if (found.has(key)) twice.add(key);
    found.set(key, { from: value, to });
    at = afterSpace(text, to);
    if (text[at] === ',') at = afterSpace(text, at + 1);
  }
  for (const key of twice) found.delete(key);
  return found;
}

/** Returns the text at a place. */
export const textAt = (text: string, { from, to }: JsonPlace): string => text.slice(from, to);
