/** The place of a value in a JSON text, in UTF-16 units. */
export interface JsonPlace {
  readonly from: number;
  readonly to: number;
}

const SPACE = /[ \t\n\r]/;

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

/** Returns the end of the value that begins at a place. */
function endOfValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return endOfString(text, from);
  if (first !== '{' && first !== '[') {
    const end = /[,\]}\s]/g;
    end.lastIndex = from;
    return end.exec(text)?.index ?? text.length;
  }
  const mark = /["[\]{}]/g;
  let depth = 0;
  mark.lastIndex = from;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    const [one] = found;
    if (one === '"') mark.lastIndex = endOfString(text, found.index);
    else depth += one === '{' || one === '[' ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
  return text.length;
}

/** Returns the places of the values in the list that begins at a place of a valid JSON text. */
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
 * Returns the place of a member's value in the object that begins at a place of a valid JSON text.
 * Undefined if the object lacks the member, or has it twice: readers differ in which one counts.
 */
export function memberPlace(text: string, from: number, name: string): JsonPlace | undefined {
  let found: JsonPlace | undefined;
  let at = afterSpace(text, from + 1);
  while (at < text.length && text[at] !== '}') {
    const keyEnd = endOfString(text, at);
    const key: unknown = JSON.parse(text.slice(at, keyEnd));
    const value = afterSpace(text, afterSpace(text, keyEnd) + 1);
    const to = endOfValue(text, value);
    if (key === name) {
      if (found !== undefined) return undefined;
      found = { from: value, to };
    }
    at = afterSpace(text, to);
    if (text[at] === ',') at = afterSpace(text, at + 1);
  }
  return found;
}

/** Returns a place's text. */
export const textAt = (text: string, { from, to }: JsonPlace): string => text.slice(from, to);
