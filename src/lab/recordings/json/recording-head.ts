import { Assembler } from 'stream-json/core/assembler.js';
import type { RecordingSource } from '../importer.js';
import { isJsonObject, type JsonObject } from './json-text.js';
import { createTokenizer } from './json-tokens.js';

/** What a recording begins with. */
export interface RecordingHead {
  /** Its first JSON value as far as it goes; undefined where it is none. */
  readonly value: unknown;
  /** Whether another value follows: JSON lines. */
  readonly several: boolean;
}

const SLICE_CHARS = 1024;
const read = new WeakMap<Buffer, RecordingHead>();

function readHead(head: Buffer): RecordingHead {
  const tokenizer = createTokenizer();
  const built = new Assembler();
  const text = new TextDecoder().decode(head);
  let begun = false;
  try {
    for (let from = 0; from < text.length; from += SLICE_CHARS) {
      for (const token of tokenizer.feed(text.slice(from, from + SLICE_CHARS))) {
        if (begun && built.done) return { value: built.current, several: true };
        if (!begun && token.name !== 'startObject' && token.name !== 'startArray') return { value: undefined, several: false };
        begun = true;
        built.consume(token);
      }
    }
  } catch {
    // What was read in front of the broken place tells enough.
  }
  return { value: begun ? tornValue(built) : undefined, several: false };
}

/** What was put together of a value so far: containers that are still open are laid into the ones around them. */
function tornValue({ stack, current }: Assembler): unknown {
  let value: unknown = current;
  for (let at = stack.length - 2; at >= 0; at -= 2) {
    const around = stack[at];
    const key = stack[at + 1];
    if (Array.isArray(around)) around.push(value);
    else if (typeof around === 'object' && around !== null && typeof key === 'string') Object.assign(around, { [key]: value });
    value = around;
  }
  return value;
}

/** The first JSON value of a recording as far as its head goes: for telling what it is, and for what it says of itself. */
export function recordingHead({ head }: RecordingSource): RecordingHead {
  const known = read.get(head);
  if (known !== undefined) return known;
  const found = readHead(head);
  read.set(head, found);
  return found;
}

/** The first value where it is an object. */
export function headObject(source: RecordingSource): JsonObject | undefined {
  const { value } = recordingHead(source);
  return isJsonObject(value) ? value : undefined;
}

/** The objects of a list in a recording's head; the last may be torn. */
export function headObjects(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}
