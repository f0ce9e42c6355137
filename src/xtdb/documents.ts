import { EdnError } from '../edn/errors.js';
import { checkDepth, checkNumber, checkString, EdnDouble, EdnMap, type EdnValue, Keyword } from '../edn/values.js';
import { XtdbError } from './errors.js';

/**
 * The type of an attribute's value, in every version of every document (decision G9). One attribute
 * has one index type.
 *
 * - `id`: a string that is not empty
 * - `string`, `nullable-string`
 * - `long`: a safe integer
 * - `boolean`
 * - `nested`: any JSON value, indexed as one map with string keys; null stays null
 */
export type AttributeType = 'id' | 'string' | 'nullable-string' | 'long' | 'boolean' | 'nested';

/**
 * All top-level attributes of documents, with their types [§2.2, §2.6, decision G9].
 *
 * Only these names ever become keywords. A document with any other attribute is rejected before it
 * is sent, and the error names the attribute.
 */
export const ATTRIBUTES = {
  'xt/id': 'id',
  type: 'string',
  source: 'nested',
  content: 'nullable-string',
  file_type: 'string',
  char_count: 'long',
  file_hash: 'nullable-string',
  content_hash: 'nullable-string',
  metadata_hash: 'string',
  object_hash: 'string',
  identity_hash: 'string',
  tool: 'string',
  args: 'nested',
  args_display: 'string',
  status: 'string',
  chat_ref: 'nullable-string',
  file_refs: 'nested',
  session_ref: 'nullable-string',
  turn_count: 'long',
  toolcall_refs: 'nested',
  turns: 'nested',
  session_id: 'string',
  system_prompt_ref: 'nullable-string',
  session_index: 'nested',
  metadata_pool: 'nested',
  active_set: 'nested',
  pinned_set: 'nested',
  // Storage only (decision G2): no hash covers these attributes and no reader of documents sees
  // them.
  gone: 'boolean',
  whole: 'string',
  epoch: 'long',
  upto: 'long',
  seq: 'long',
  parent: 'nested',
  roots: 'nested',
  author: 'nested',
  snapshot_ref: 'string',
  assembly_ref: 'string',
  record_ref: 'string',
  body: 'nested',
  text: 'string',
  size: 'long',
} as const satisfies Readonly<Record<string, AttributeType>>;

export type AttributeName = keyof typeof ATTRIBUTES;

/** Returns the type of an attribute; `undefined` if the name is not on the list. */
const attributeType = (name: string): AttributeType | undefined =>
  Object.hasOwn(ATTRIBUTES, name) ? ATTRIBUTES[name as AttributeName] : undefined;

/** A value inside a document: JSON. */
export type StoredValue =
  | string
  | number
  | boolean
  | null
  | readonly StoredValue[]
  | { readonly [key: string]: StoredValue };

/** A flat document as stored: attributes of `ATTRIBUTES`, always including `xt/id`. */
export type StoredDocument = Readonly<Record<string, StoredValue>> & { readonly 'xt/id': string };

/**
 * Converts a document to EDN: a map with a keyword per attribute.
 *
 * Equal documents give equal bytes to hash, regardless of key order. Whole numbers are
 * always longs.
 *
 * @throws {XtdbError} `bad-request`, naming the attribute that is not on the list or whose value
 *   has the wrong type
 */
export function fromDocument(document: StoredDocument): EdnMap {
  const flat: EdnValue[] = [];
  for (const [name, value] of Object.entries(document)) {
    const type = attributeType(name);
    if (type === undefined)
      throw new XtdbError('bad-request', `${where(document, name)} is not an attribute that documents may have.`);
    try {
      flat.push(keywordOf(name as AttributeName), CODECS[type].write(value));
    } catch (cause) {
      if (!(cause instanceof EdnError)) throw cause;
      throw new XtdbError('bad-request', `${where(document, name)} cannot be stored as ${type}: ${cause.message}`, {
        cause,
      });
    }
  }
  if (!Object.hasOwn(document, 'xt/id')) throw new XtdbError('bad-request', 'A document needs the attribute xt/id.');
  return new EdnMap(flat);
}

/**
 * Converts a value from the database to a document.
 *
 * @throws {XtdbError} `bad-response` if it is not a document of ours: an attribute is not on the
 *   list, or a value has the wrong type
 */
export function toDocument(value: EdnValue): StoredDocument {
  if (!(value instanceof EdnMap))
    throw new XtdbError('bad-response', 'The database answered with a value that is not a document.');
  const document: Record<string, StoredValue> = {};
  for (let i = 0; i < value.flat.length; i += 2) {
    const key = value.flat[i];
    const type = key instanceof Keyword ? attributeType(key.name) : undefined;
    if (!(key instanceof Keyword) || type === undefined) {
      throw new XtdbError(
        'bad-response',
        `A stored document has the attribute ${key instanceof Keyword ? `:${key.name}` : 'of another kind'}, ` +
          'which this version does not know.',
      );
    }
    document[key.name] = readAttribute(key.name, type, value.flat[i + 1]);
  }
  if (typeof document['xt/id'] !== 'string')
    throw new XtdbError('bad-response', 'A stored document has no string as its id.');
  return document as StoredDocument;
}

/**
 * Converts a single attribute's value from a query to its form in a document.
 *
 * @throws {XtdbError} `bad-response`
 */
export const toAttribute = (name: AttributeName, value: EdnValue): StoredValue =>
  readAttribute(name, ATTRIBUTES[name], value);

function readAttribute(name: string, type: AttributeType, value: EdnValue | undefined): StoredValue {
  try {
    return CODECS[type].read(value);
  } catch (cause) {
    if (!(cause instanceof EdnError)) throw cause;
    throw new XtdbError('bad-response', `The stored attribute ${name} is not ${type}: ${cause.message}`, { cause });
  }
}

const where = (document: StoredDocument, name: string): string =>
  `${JSON.stringify(name.slice(0, 60))} of ${JSON.stringify(String(document['xt/id']).slice(0, 80))}`;

const KEYWORDS = new Map<AttributeName, Keyword>();

function keywordOf(name: AttributeName): Keyword {
  const known = KEYWORDS.get(name) ?? new Keyword(name);
  KEYWORDS.set(name, known);
  return known;
}

interface Codec {
  readonly write: (value: unknown) => EdnValue;
  readonly read: (value: EdnValue | undefined) => StoredValue;
}

const expected = (what: string, value: unknown): EdnError =>
  new EdnError(
    'not-a-value',
    `expected ${what}, not ${value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value}.`,
  );

function aString(value: unknown): string {
  if (typeof value !== 'string') throw expected('a string', value);
  return checkString(value);
}

function aNonEmptyString(value: unknown): string {
  if (value === '') throw new EdnError('not-a-value', 'the string is empty.');
  return aString(value);
}

const aNullableString = (value: unknown): string | null => (value === null ? null : aString(value));

function aLong(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw expected('a whole number', value);
  return checkNumber(value);
}

function aBoolean(value: unknown): boolean {
  if (typeof value !== 'boolean') throw expected('a boolean', value);
  return value;
}

const CODECS: Readonly<Record<AttributeType, Codec>> = {
  id: { write: aNonEmptyString, read: aNonEmptyString },
  string: { write: aString, read: aString },
  'nullable-string': { write: aNullableString, read: aNullableString },
  long: { write: aLong, read: aLong },
  boolean: { write: aBoolean, read: aBoolean },
  nested: { write: (value) => wrapNested(value), read: (value) => unwrapNested(value) },
};

/**
 * The key of the map that wraps a nested value other than a map. A map costs one index key, but a
 * vector costs one key per element.
 */
export const VALUE_KEY = 'v';
/** The key of the map that wraps a nested map whose only key is `v` or `m`. */
export const MAP_KEY = 'm';

/**
 * Returns a map with string keys, so that the attribute has one index type; only null stays null.
 */
function wrapNested(value: unknown): EdnValue {
  if (value === null) return null;
  const inner = nestedValue(value);
  if (!(inner instanceof EdnMap)) return new EdnMap([VALUE_KEY, inner]);
  return inner.flat.length === 2 && (inner.flat[0] === VALUE_KEY || inner.flat[0] === MAP_KEY)
    ? new EdnMap([MAP_KEY, inner])
    : inner;
}

function unwrapNested(value: EdnValue | undefined): StoredValue {
  if (value === null) return null;
  if (!(value instanceof EdnMap)) throw expected('a map', value);
  const [key, inner] = value.flat;
  return readJson(
    value.flat.length === 2 && inner !== undefined && (key === VALUE_KEY || key === MAP_KEY) ? inner : value,
  );
}

/**
 * Converts a JSON value to its form inside a document: objects become maps with string keys.
 * @throws {EdnError}
 */
export function nestedValue(value: unknown, depth = 0): EdnValue {
  checkDepth(depth);
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') return checkString(value);
  if (typeof value === 'number')
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? new EdnDouble(value) : checkNumber(value);
  if (Array.isArray(value)) return Array.from(value, (item) => nestedValue(item, depth + 1));
  if (typeof value !== 'object' || !isPlain(value))
    throw new EdnError('not-a-value', `a ${typeof value} is not a JSON value.`);
  const flat: EdnValue[] = [];
  for (const [key, member] of Object.entries(value)) flat.push(checkString(key), nestedValue(member, depth + 1));
  return new EdnMap(flat);
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function readJson(value: EdnValue): StoredValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return value;
  if (Array.isArray(value)) return value.map(readJson);
  if (!(value instanceof EdnMap)) throw expected('JSON', value);
  const object: Record<string, StoredValue> = {};
  for (let i = 0; i < value.flat.length; i += 2) {
    const key = value.flat[i];
    const member = value.flat[i + 1];
    if (typeof key !== 'string' || member === undefined) throw expected('a string as a key', key);
    // An assignment to this name would set the prototype instead of a member.
    if (key === '__proto__')
      Object.defineProperty(object, key, {
        value: readJson(member),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    else object[key] = readJson(member);
  }
  return object;
}
