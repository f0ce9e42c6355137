import { assertPlainJson, type Json } from '../objects/canonical-json.js';
import { JournalError } from './errors.js';

/** The format of encoded values. */
const FORMAT = 1;
/** Texts longer than this many UTF-16 units stand behind the JSON, each once. */
const LIFTED_OVER = 1_024;
/** A string in the JSON that begins with this is the number of a lifted text, or, with the sign twice, itself. */
const SIGN = '~';
const HEAD = 9;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A value with its long texts exchanged for their numbers; what holds none of them is not copied. */
function lifted(value: Json, numbers: Map<string, number>): Json {
  if (typeof value === 'string') {
    if (value.length <= LIFTED_OVER) return value.startsWith(SIGN) ? SIGN + value : value;
    const number = numbers.get(value) ?? numbers.size;
    numbers.set(value, number);
    return `${SIGN}${number}`;
  }
  if (value === null || typeof value !== 'object') return value;
  let copy: Record<string, Json> | undefined;
  const list = Array.isArray(value);
  const members = value as { readonly [key: string]: Json };
  for (const key of Object.keys(value)) {
    const member = members[key] as Json;
    const kept = lifted(member, numbers);
    if (kept === member) continue;
    // fromEntries defines what plain assignment would not: a key `__proto__`, which it can change then.
    copy ??= list ? ([...value] as unknown as Record<string, Json>) : Object.fromEntries(Object.entries(value));
    copy[key] = kept;
  }
  return (copy as Json | undefined) ?? value;
}

/**
 * Plain JSON data as bytes, in parts for one write: a table of lengths, the JSON without its long texts, and each different long text once
 * as plain UTF-8. Equal values whose keys have the same order give equal bytes.
 * @throws {DocumentError} for what canonical JSON refuses
 */
export function encodePayload(value: Json): readonly Buffer[] {
  assertPlainJson(value, 'record');
  const numbers = new Map<string, number>();
  const json = JSON.stringify(lifted(value, numbers));
  const body = Buffer.from(json);
  const texts = [...numbers.keys()].map((text) => Buffer.from(text));
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
  return new JournalError('bad-payload', `a journal record cannot be decoded: ${what}; keep a copy of the journal and report it`, {
    cause,
  });
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

/** Puts the texts back in place of their numbers. */
function restore(value: Json, texts: readonly string[]): Json {
  if (typeof value === 'string') {
    if (!value.startsWith(SIGN)) return value;
    if (value.startsWith(SIGN, 1)) return value.slice(1);
    const text = /^~(0|[1-9]\d*)$/.test(value) ? texts[Number(value.slice(1))] : undefined;
    if (text === undefined) throw bad(`it refers to a text ${JSON.stringify(value)} that it does not hold`);
    return text;
  }
  if (Array.isArray(value)) return value.map((member: Json) => restore(member, texts));
  // fromEntries defines what plain assignment would not: a key `__proto__`.
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, restore(member, texts)]));
  return value;
}

/**
 * Gives back what `encodePayload` was given.
 * @throws {JournalError} `bad-payload` for anything but its whole, undamaged result
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
