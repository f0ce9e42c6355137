/**
 * Characters that could end a value, begin another or hide in it: white space, quotes, control and
 * invisible format characters, including bidi ones.
 */
const NEEDS_QUOTES = /[\s"'\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/**
 * Characters that JSON leaves unescaped although a reader may take them for a line end or not see
 * them.
 */
const LEFT_BY_JSON = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function escaped(character: string): string {
  let units = '';
  for (let i = 0; i < character.length; i++) units += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return units;
}

/** Returns whether a value appears in a line unquoted. */
export const isBare = (value: string): boolean => value !== '' && !NEEDS_QUOTES.test(value);

/**
 * Returns a value as it appears in a line of the context (divergence E3). It is bare, or a JSON
 * string if it is empty or contains white space, quotes, control or format characters. No file,
 * tool or id can therefore forge a line. A backslash alone needs no quotes.
 */
export function renderedValue(value: string): string {
  // V8 may hold an id from a set as a reference to another string; `directString` resolves it.
  if (isBare(value)) return directString(value);
  return JSON.stringify(value).replace(LEFT_BY_JSON, escaped);
}

/** No prototype: any text can be a key. */
const keys = Object.create(null) as Record<string, true>;

/**
 * Returns the same text as V8's internalised string. V8 replaces a string that was an object key by
 * a reference to its internalised copy (a ThinString) until the next garbage collection. `join`
 * treats such a reference as a two-byte string. One such id among ten thousand lines would double
 * the size of the whole text.
 */
export function directString(value: string): string {
  keys[value] = true;
  const [direct = value] = Object.keys(keys);
  delete keys[value];
  return direct;
}
