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
