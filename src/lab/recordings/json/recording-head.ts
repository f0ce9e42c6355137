import { createHash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import { Assembler } from 'stream-json/core/assembler.js';
import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import type { RecordingSource } from '../importer.js';
import { createTokenizer } from './json-document.js';
import { parseJson } from './json-text.js';

/** The first bytes of a recording, parsed as JSON. */
export interface RecordingHead {
  /**
   * The part of the first JSON value that lies within the head. Undefined if the value is neither
   * an object nor a list.
   */
  readonly value: unknown;
  /** Whether another value follows, as in JSON lines. */
  readonly several: boolean;
  /** Whether the head ends inside the first value and has no error before that. */
  readonly isOpen: boolean;
}

const SLICE_CHARS = 1024;

function readHead(text: string): RecordingHead {
  const tokensOf = createTokenizer();
  const built = new Assembler();
  let begun = false;
  let isOpen = false;
  try {
    for (let from = 0; from < text.length; from += SLICE_CHARS) {
      for (const token of tokensOf(text.slice(from, from + SLICE_CHARS))) {
        if (begun && built.done) return { value: built.current, several: true, isOpen: false };
        if (!begun && token.name !== 'startObject' && token.name !== 'startArray')
          return { value: undefined, several: false, isOpen: false };
        begun = true;
        built.consume(token);
      }
    }
    isOpen = begun && !built.done;
  } catch {
    // The text before the error is enough to recognise the format.
  }
  return { value: begun ? tornValue(built) : undefined, several: false, isOpen };
}

/**
 * Returns the value that the assembler has built so far, including containers that are still open.
 */
function tornValue({ stack, current, key: last }: Assembler): unknown {
  let value: unknown = current;
  // Keeps the name of a field whose value is incomplete.
  if (isJsonObject(value) && last !== null) Object.assign(value, { [last]: value[last] });
  for (let at = stack.length - 2; at >= 0; at -= 2) {
    const around = stack[at];
    const key = stack[at + 1];
    if (Array.isArray(around)) around.push(value);
    else if (typeof around === 'object' && around !== null && typeof key === 'string')
      Object.assign(around, { [key]: value });
    value = around;
  }
  return value;
}

function readHeadRecords(head: Buffer): readonly JsonObject[] {
  // The decoder leaves out an incomplete last character.
  const text = new StringDecoder('utf8').write(head).replace('\uFEFF', '');
  return text.split('\n').flatMap((line) => {
    const record = parseJson(line) ?? readHead(line).value;
    return isJsonObject(record) ? [record] : [];
  });
}

/** Caches the result of `read` for each head, because every importer reads the head. */
function oncePerHead<T>(read: (head: Buffer) => T): (source: RecordingSource) => T {
  const known = new WeakMap<Buffer, { readonly value: T }>();
  return ({ head }) => {
    const found = known.get(head) ?? { value: read(head) };
    known.set(head, found);
    return found.value;
  };
}

/** Parses the first JSON value in a recording's head. The head may end inside the value. */
export const recordingHead: (source: RecordingSource) => RecordingHead = oncePerHead((head) =>
  readHead(new TextDecoder().decode(head)),
);

/**
 * Returns the records at the beginning of a JSON lines file. If the head ends inside a record, that
 * record has only its complete fields.
 */
export const headRecords: (source: RecordingSource) => readonly JsonObject[] = oncePerHead(readHeadRecords);

/** Returns the first JSON value of a recording if it is an object. */
export function headObject(source: RecordingSource): JsonObject | undefined {
  const { value } = recordingHead(source);
  return isJsonObject(value) ? value : undefined;
}

/** Returns the objects of a list in a recording's head. The last object may be incomplete. */
export function headObjects(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

/**
 * Returns an id for a session that has none. It is derived from the recording's first bytes and
 * size, so it is the same on every machine and under every file name.
 */
export function recordingId(source: RecordingSource): string {
  return createHash('sha256').update(source.head).update(`\0${source.size}`).digest('hex').slice(0, 32);
}
