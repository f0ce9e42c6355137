import { directString } from '../objects/direct-string.js';

/** What could end a value, begin another one or hide in it: white space, quotes, control and invisible format characters (bidi ones too). */
const NEEDS_QUOTES = /[\s"'\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** What JSON leaves as it is although a reader may take it for a line end, or not see it at all. */
const LEFT_BY_JSON = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function escaped(character: string): string {
  let units = '';
  for (let i = 0; i < character.length; i++) units += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return units;
}

/**
 * A value as it stands in a line of the context (decision E3): bare, or as a JSON string when it is empty or holds white space, quotes, control or
 * format characters. So no file, tool or id can forge a line. A bare value is the value itself, a quoted one is JSON for it; a backslash
 * alone needs no quotes.
 */
export function renderedValue(value: string): string {
  // Ids of sets were keys; they stand in every line.
  if (value !== '' && !NEEDS_QUOTES.test(value)) return directString(value);
  return JSON.stringify(value).replace(LEFT_BY_JSON, escaped);
}
