import { assertPlainJson, DEEPEST, type Json } from '../objects/canonical-json.js';
import { utf8Of } from '../objects/hashes.js';
import { JournalError } from './errors.js';

/** The format of encoded values. */
const FORMAT = 1;
/** Texts longer than this many UTF-16 units are stored after the JSON, once each. */
const LIFTED_OVER = 1_024;
/**
 * A JSON string that begins with this sign refers to a stored text by number. A doubled sign
 * escapes a string that begins with it.
 */
const SIGN = '~';
const HEAD = 9;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Replaces the long texts of a value by numbers and checks that the value is plain data. */
class Lifting {
  /** The long texts and their numbers. */
  readonly numbers = new Map<string, number>();
  readonly #whole: unknown;

  constructor(whole: unknown) {
    this.#whole = whole;
  }

  /**
   * Returns the value with its long texts replaced. Parts without long texts are not copied.
   * @throws {DocumentError} for values that canonical JSON rejects
   */
  lift(value: Json, depth = 0): Json {
    if (depth > DEEPEST) return this.#refuse();
    if (typeof value === 'string') return value.isWellFormed() ? this.#text(value) : this.#refuse();
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'number') return Number.isFinite(value) ? value : this.#refuse();
    if (typeof value !== 'object') return this.#refuse();
    return Array.isArray(value)
      ? this.#list(value, depth)
      : this.#object(value as { readonly [key: string]: Json }, depth);
  }

  #text(text: string): Json {
    if (text.length <= LIFTED_OVER) return text.startsWith(SIGN) ? SIGN + text : text;
    const number = this.numbers.get(text) ?? this.numbers.size;
    this.numbers.set(text, number);
    return `${SIGN}${number}`;
  }

  #list(list: readonly Json[], depth: number): Json {
    let copy: Json[] | undefined;
    for (let i = 0; i < list.length; i++) {
      const kept = this.lift(list[i] as Json, depth + 1);
      if (kept === list[i]) continue;
      copy ??= [...list];
      copy[i] = kept;
    }
    return copy ?? list;
  }

  #object(members: { readonly [key: string]: Json }, depth: number): Json {
    const prototype = Object.getPrototypeOf(members);
    if (prototype !== Object.prototype && prototype !== null) return this.#refuse();
    let copy: Record<string, Json> | undefined;
    for (const key of Object.keys(members)) {
      if (!key.isWellFormed()) return this.#refuse();
      const member = members[key] as Json;
      const kept = this.lift(member, depth + 1);
      if (kept === member) continue;
      // Unlike an assignment, `fromEntries` defines a key `__proto__`; later assignments can then
      // change it.
      copy ??= Object.fromEntries(Object.entries(members));
      copy[key] = kept;
    }
    return copy ?? members;
  }

  /** Throws an error that names the fault and its position. */
  #refuse(): never {
    assertPlainJson(this.#whole, 'record');
    throw new Error('BUG: a record of plain data was refused');
  }
}

/**
 * Encodes plain JSON data in parts for one write. The parts are a table of lengths, the JSON
 * without its long texts, and each distinct long text once as UTF-8. Equal values with the same key
 * order give equal bytes.
 * @throws {DocumentError} for values that canonical JSON rejects
 */
export function encodePayload(value: Json): readonly Buffer[] {
  const lifting = new Lifting(value);
  const body = Buffer.from(JSON.stringify(lifting.lift(value)));
  const texts = [...lifting.numbers.keys()].map(utf8Of);
  const head = Buffer.alloc(HEAD + 4 * texts.length);
  head.writeUInt8(FORMAT);
  head.writeUInt32LE(body.length, 1);
  head.writeUInt32LE(texts.length, 5);
  texts.forEach((text, i) => {
    head.writeUInt32LE(text.length, HEAD + 4 * i);
  });
  return [head, body, ...texts];
}

function bad(what: string, cause?: unknown): JournalError {
  return new JournalError(
    'bad-payload',
    `a journal record cannot be decoded: ${what}; keep a copy of the journal and report it`,
    {
      cause,
    },
  );
}

function decodeText(bytes: Buffer, what: string): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw bad(`${what} is not UTF-8`, cause);
  }
}

function parseJson(bytes: Buffer): Json {
  try {
    return JSON.parse(decodeText(bytes, 'its JSON')) as Json;
  } catch (cause) {
    if (cause instanceof JournalError) throw cause;
    throw bad('its JSON is damaged', cause);
  }
}

/** Replaces the references in a value by their texts. */
function restore(value: Json, texts: readonly string[]): Json {
  if (typeof value === 'string') {
    if (!value.startsWith(SIGN)) return value;
    if (value.startsWith(SIGN, 1)) return value.slice(1);
    const text = /^~(0|[1-9]\d*)$/.test(value) ? texts[Number(value.slice(1))] : undefined;
    if (text === undefined) throw bad(`it refers to a text ${JSON.stringify(value)} that it does not hold`);
    return text;
  }
  if (Array.isArray(value)) return value.map((member: Json) => restore(member, texts));
  // Unlike an assignment, `fromEntries` defines a key `__proto__`.
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, restore(member, texts)]));
  return value;
}

/**
 * Decodes the result of `encodePayload`.
 * @throws {JournalError} `bad-payload` unless the bytes are complete and undamaged
 */
export function decodePayload(bytes: Uint8Array): Json {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (all.length < HEAD) throw bad(`${all.length} bytes are too few`);
  if (all.readUInt8() !== FORMAT) throw bad(`its format is ${all.readUInt8()}, this version knows ${FORMAT}`);
  const bodyLength = all.readUInt32LE(1);
  const count = all.readUInt32LE(5);
  const bodyStart = HEAD + 4 * count;
  if (bodyStart + bodyLength > all.length) throw bad(`${all.length} bytes are too few`);
  const texts: string[] = [];
  let at = bodyStart + bodyLength;
  for (let i = 0; i < count; i++) {
    const end = at + all.readUInt32LE(HEAD + 4 * i);
    if (end > all.length) throw bad(`${all.length} bytes are too few`);
    texts.push(decodeText(all.subarray(at, end), `text ${i}`));
    at = end;
  }
  if (at !== all.length) throw bad(`${all.length - at} bytes follow its end`);
  return restore(parseJson(all.subarray(bodyStart, bodyStart + bodyLength)), texts);
}
