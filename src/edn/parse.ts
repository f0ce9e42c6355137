import { type EDNVal, parseEDNString } from 'edn-data';
import { checkDate, checkString } from './checks.js';
import { EdnError } from './errors.js';
import { scan } from './scan.js';
import { EdnList, EdnMap, EdnSet, EdnSymbol, EdnTagged, type EdnValue, Keyword } from './values.js';

/**
 * The value of a text that holds exactly one complete EDN form.
 *
 * Meant for small answers (receipts, a basis, error maps). A cut-off text, mismatched brackets, anything behind the form, numbers that would
 * lose digits and duplicate keys are errors, never a shorter value.
 *
 * @throws {EdnError}
 */
export const parse = (text: string): EdnValue => {
  scan(text);
  let parsed: unknown;
  try {
    parsed = parseEDNString(text);
  } catch (cause) {
    throw new EdnError('unsupported', 'The text could not be read as EDN.', { cause });
  }
  return fromReaderValue(parsed as EDNVal);
};

function fromReaderValue(value: EDNVal): EdnValue {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Object.is(value, -0) ? 0 : value;
  if (typeof value === 'string') return checkString(value);
  if (Array.isArray(value)) return value.map(fromReaderValue);
  if (value instanceof Date) return checkDate(value);
  if (typeof value === 'object' && !(value instanceof Map || value instanceof Set)) {
    if ('key' in value) return new Keyword(value.key);
    if ('sym' in value) return new EdnSymbol(value.sym);
    if ('list' in value) return new EdnList(value.list.map(fromReaderValue));
    if ('set' in value) return new EdnSet(value.set.map(fromReaderValue));
    if ('map' in value) return fromReaderMap(value.map);
    if ('tag' in value) return new EdnTagged(value.tag, fromReaderValue(value.val));
  }
  throw new EdnError('unsupported', 'The text holds a kind of value that is not read here.');
}

function fromReaderMap(entries: readonly (readonly [EDNVal, EDNVal])[]): EdnMap {
  const seen = new Set<string>();
  const flat: EdnValue[] = [];
  for (const [rawKey, rawValue] of entries) {
    const key = fromReaderValue(rawKey);
    const identity = key instanceof Keyword ? `:${key.name}` : typeof key === 'string' ? JSON.stringify(key) : undefined;
    if (identity !== undefined) {
      if (seen.has(identity)) throw new EdnError('duplicate-key', `A map holds the key ${identity.slice(0, 40)} twice.`);
      seen.add(identity);
    }
    flat.push(key, fromReaderValue(rawValue));
  }
  return new EdnMap(flat);
}
