/** What could end a value, begin another one or hide in it: white space, quotes, control and invisible format characters (bidi ones too). */
const NEEDS_QUOTES = /[\s"'\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** What JSON leaves as it is although a reader may take it for a line end, or not see it at all. */
const LEFT_BY_JSON = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function escaped(character: string): string {
  let units = '';
  for (let i = 0; i < character.length; i++) units += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return units;
}

/** Whether a value stands in a line as it is. */
export const isBare = (value: string): boolean => value !== '' && !NEEDS_QUOTES.test(value);

/**
 * A value as it stands in a line of the context (divergence E3): bare, or as a JSON string when it is empty or holds white space, quotes, control or
 * format characters. So no file, tool or id can forge a line. A bare value is the value itself, a quoted one is JSON for it; a backslash
 * alone needs no quotes.
 */
export function renderedValue(value: string): string {
  // Ids of sets were keys; they stand in every line.
  if (isBare(value)) return directString(value);
  return JSON.stringify(value).replace(LEFT_BY_JSON, escaped);
}

/** Without a prototype: any text can be a key. */
const keys = Object.create(null) as Record<string, true>;

/**
 * The same text, as the string that V8 itself has of it. A string that was once the key of an object is only a pointer from then on, until memory is
 * collected, and `join` takes a pointer for a text of two bytes a character: one such id among ten thousand lines, and the whole text is twice as large.
 */
export function directString(value: string): string {
  keys[value] = true;
  const [direct = value] = Object.keys(keys);
  delete keys[value];
  return direct;
}
