import transit from 'transit-js';
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
 * Returns the transit+json text of a value, for bulk writes.
 *
 * Whole numbers are written as longs, fractions as doubles, instants with milliseconds. Values pass
 * the same checks as for EDN.
 *
 * @throws {EdnError} `bad-number`, `bad-string`, `too-deep`, `not-a-value`
 */
export function encodeTransit(value: EdnValue): string {
  checkWritable(value, 0);
  // The writer's cache of names is a plain object. A key such as "__proto__" in an agent's data
  // would write into Object.prototype.
  return transit.writer('json', { handlers: WRITE_HANDLERS, unpack: (map) => map, cache: false }).write(value);
}

/**
 * Parses one transit+json text.
 *
 * @throws {EdnError} `truncated` if the text is not complete JSON. `bad-number` for integers beyond
 *   2^53, NaN and the infinities. `unsupported` for kinds of values that none of our documents
 *   contains.
 */
export const decodeTransit = (text: string): EdnValue => decode(text, STRICT);

/**
 * Parses one transit+json text that may have values of other programs. Each value that
 * `decodeTransit` would reject becomes `UNREADABLE`.
 *
 * @throws {EdnError} `truncated`
 */
export const decodeForeignTransit = (text: string): EdnValue => decode(text, FOREIGN);

/** Stands for a value that cannot be read. No attribute of a document accepts it. */
export const UNREADABLE = new EdnTagged('palimpsest/unreadable', null);

/** How a text is read. `attempt` reads one value. */
interface Reading {
  readonly options: Parameters<typeof transit.reader>[1];
  readonly attempt: (read: () => EdnValue) => EdnValue;
}

function decode(text: string, { options, attempt }: Reading): EdnValue {
  let read: unknown;
  try {
    // A reader keeps its key cache after a failed read, so each text gets a new reader.
    read = transit.reader('json', options).read(text);
  } catch (cause) {
    if (cause instanceof EdnError) throw cause;
    throw new EdnError('truncated', 'The text is not complete transit+json.', { cause });
  }
  return toEdnValue(read, 0, attempt);
}

const tagged = <T>(tag: string, rep: (value: T) => unknown): unknown =>
  transit.makeWriteHandler<T>({
    tag: () => tag,
    rep,
    stringRep: (value) => (tag.length === 1 ? String(rep(value)) : null),
  });

const ofArray = (items: readonly EdnValue[]): { readonly forEach: unknown } => items;

const WRITE_HANDLERS: unknown = transit.map([
  Keyword,
  tagged<Keyword>(':', (keyword) => keyword.name),
  EdnSymbol,
  tagged<EdnSymbol>('$', (symbol) => symbol.name),
  EdnMap,
  // The writer is fastest with a flat array, which `unpack` passes through.
  tagged<EdnMap>('map', (map) => ofArray(map.flat)),
  EdnList,
  tagged<EdnList>('list', (list) => list.items),
  EdnSet,
  tagged<EdnSet>('set', (set) => set.items),
  EdnTagged,
  transit.makeWriteHandler<EdnTagged>({
    tag: (value) => value.tag,
    rep: (value) => value.value,
    stringRep: () => null,
  }),
  EdnDouble,
  // The writer emits this text verbatim. Without `~d`, 1e20 would be read as a big integer.
  tagged<EdnDouble>('d', (double) => `~d${double.value}`),
]);

/** XTDB's tag for a hash in transit. */
const OID = 'xtdb/oid';

const READ_HANDLERS: Readonly<Record<string, (rep: never) => EdnValue>> = {
  ':': (name: string) => new Keyword(name),
  $: (name: string) => new EdnSymbol(name),
  list: (items: EdnValue[]) => new EdnList(items),
  set: (items: EdnValue[]) => new EdnSet(items),
  m: (millis: string | number) => new Date(Number(millis)),
  // A separate handler is faster, and most of a transaction log consists of these hashes.
  [OID]: (hash: unknown) => {
    if (typeof hash !== 'string')
      throw new EdnError('unsupported', `The database answered with a #${OID} that is not a string.`);
    return new EdnTagged(OID, hash);
  },
  z: (name: string) => {
    throw new EdnError('bad-number', `The database answered with the number ${String(name).slice(0, 10)}.`);
  },
  n: () => {
    throw new EdnError('bad-number', 'The database answered with an integer beyond 64 bits.');
  },
};

const MAP_BUILDER = {
  init: (): unknown[] => [],
  add: (flat: unknown[], key: unknown, value: unknown): unknown[] => {
    flat.push(key, value);
    return flat;
  },
  finalize: (flat: unknown[]): EdnMap => new EdnMap(flat as EdnValue[]),
};

const STRICT: Reading = {
  options: { handlers: READ_HANDLERS, mapBuilder: MAP_BUILDER },
  attempt: (read) => read(),
};

/** Returns a value, or `UNREADABLE` if it is rejected. */
function readOrReplace(read: () => EdnValue): EdnValue {
  try {
    return read();
  } catch (error) {
    if (error instanceof EdnError) return UNREADABLE;
    throw error;
  }
}

const FOREIGN: Reading = {
  options: {
    handlers: Object.fromEntries(
      Object.entries(READ_HANDLERS).map(([tag, read]) => [tag, (rep: never) => readOrReplace(() => read(rep))]),
    ),
    mapBuilder: MAP_BUILDER,
  },
  attempt: readOrReplace,
};

function checkWritable(value: EdnValue, depth: number): void {
  if (typeof value === 'string') {
    checkString(value);
    return;
  }
  if (typeof value === 'number') {
    checkNumber(value);
    return;
  }
  if (value === null || typeof value === 'boolean') return;
  checkDepth(depth);
  const children = childrenOf(value);
  if (children !== undefined) {
    for (const child of children) checkWritable(child, depth + 1);
  } else if (value instanceof Date) {
    checkDate(value);
  } else if (!(value instanceof Keyword || value instanceof EdnSymbol || value instanceof EdnDouble)) {
    throw new EdnError('not-a-value', 'Only EDN values can be written as transit.');
  }
}

/**
 * Returns the members of a vector, list, set, map or tagged value; undefined for any other value.
 */
function childrenOf(value: unknown): readonly EdnValue[] | undefined {
  if (Array.isArray(value)) return value;
  if (value instanceof EdnMap) return value.flat;
  if (value instanceof EdnList || value instanceof EdnSet) return value.items;
  return value instanceof EdnTagged ? [value.value] : undefined;
}

/**
 * Checks the reader's result and replaces in place the few kinds for which the reader has its own
 * classes.
 */
function toEdnValue(value: unknown, depth: number, attempt: Reading['attempt']): EdnValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Object.is(value, -0) ? 0 : value;
  if (value instanceof EdnTagged) return value;
  return attempt(() => checkedValue(value, depth, attempt));
}

function checkedValue(value: unknown, depth: number, attempt: Reading['attempt']): EdnValue {
  checkDepth(depth);
  const children = childrenOf(value) as EdnValue[] | undefined;
  if (children !== undefined) {
    for (let i = 0; i < children.length; i += 1) children[i] = toEdnValue(children[i], depth + 1, attempt);
    return value as EdnValue;
  }
  if (value instanceof Keyword || value instanceof EdnSymbol) return value;
  if (value instanceof Date) return checkDate(value);
  if (transit.isTaggedValue(value)) return new EdnTagged(value.tag, toEdnValue(value.rep, depth + 1, attempt));
  throw new EdnError(
    'bad-number',
    'The database answered with an integer beyond 2^53, or with an unsupported kind of value.',
  );
}
