import { type EDNVal, toEDNString } from 'edn-data';
import { EdnError } from './errors.js';
import {
  checkDate,
  checkDepth,
  checkNumber,
  checkString,
  EdnDouble,
  EdnList,
  EdnMap,
  EdnSet,
  EdnSymbol,
  EdnTagged,
  type EdnValue,
  Keyword,
} from './values.js';

/**
 * Returns the EDN text of a value.
 *
 * No part of a value can become syntax: constructors check names, strings are quoted, and other
 * objects are rejected. The same value always gives the same text.
 *
 * @throws {EdnError} `bad-number`, `bad-string`, `too-deep`, `not-a-value`
 */
export const print = (value: EdnValue): string => toEDNString(toWriterValue(value, 0));

const all = (items: readonly EdnValue[], depth: number): EDNVal[] =>
  items.map((item) => toWriterValue(item, depth + 1));

function toWriterValue(value: EdnValue, depth: number): EDNVal {
  checkDepth(depth);
  switch (typeof value) {
    case 'string':
      return checkString(value);
    case 'number':
      return checkNumber(value);
    case 'boolean':
      return value;
    case 'object':
      return value === null ? null : objectToWriterValue(value, depth);
    default:
      throw new EdnError('not-a-value', `A ${typeof value} has no EDN form.`);
  }
}

function objectToWriterValue(value: NonNullable<Exclude<EdnValue, string | number | boolean>>, depth: number): EDNVal {
  if (Array.isArray(value)) return all(value, depth);
  if (value instanceof Keyword) return { key: value.name };
  if (value instanceof EdnSymbol) return { sym: value.name };
  if (value instanceof EdnMap) {
    const flat = all(value.flat, depth);
    return { map: Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i] ?? null, flat[2 * i + 1] ?? null]) };
  }
  if (value instanceof EdnList) return { list: all(value.items, depth) };
  if (value instanceof EdnSet) return { set: all(value.items, depth) };
  if (value instanceof Date) return checkDate(value);
  if (value instanceof EdnTagged) return { tag: value.tag, val: toWriterValue(value.value, depth + 1) };
  // The underlying writer prints a symbol's name verbatim. There is no other way to give it a
  // number with a decimal exponent.
  if (value instanceof EdnDouble) return { sym: doubleText(value.value) };
  throw new EdnError('not-a-value', 'A plain object has no EDN form: build maps with EdnMap.');
}

function doubleText(value: number): string {
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
