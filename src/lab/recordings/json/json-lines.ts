import { isUtf8 } from 'node:buffer';
import { isDeeperThan, isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { excerpt, type OnLoss } from '../importer.js';
import { endOfValue, MAX_DEPTH, parseJson } from './json-text.js';

/** Maximum line length in bytes. Parsing a line takes several times as much memory. */
export const MAX_LINE_BYTES = 32 * 1024 * 1024;

/** One object in a file of JSON lines. */
export interface JsonLine {
  readonly record: JsonObject;
  /** The line's number, from 1. */
  readonly line: number;
  /** The line's place in words: `line 172`. */
  readonly place: string;
}

/** Options for reading JSON lines. */
export interface JsonLinesOptions {
  readonly maxLineBytes?: number;
  /**
   * Recognises a record that follows an incomplete record on the same line. Without this function,
   * the rest of the line is lost.
   */
  readonly isRecord?: (record: JsonObject) => boolean;
}

/** Yielded when the end of a growing file was reached and no further line exists yet. */
export interface LinesRest {
  readonly rests: true;
}

interface RawLine {
  readonly bytes: Buffer;
  readonly line: number;
  /** Whether the file ends with this line and without a line end. */
  readonly last: boolean;
}

const NEWLINE = 0x0a;
const NUL = 0x00;

async function* splitLines(
  chunks: AsyncIterable<Buffer>,
  limit: number,
  onLoss: OnLoss,
): AsyncIterable<RawLine | LinesRest> {
  let line = 1;
  let parts: Buffer[] = [];
  let length = 0;
  const take = (last: boolean): readonly RawLine[] => {
    const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
    parts = [];
    if (length <= limit) return [{ bytes, line, last }];
    const detail = `the line has ${length} bytes, over the ${limit} that are read: left out`;
    onLoss({ reason: 'malformed-record', place: `line ${line}`, detail });
    return [];
  };
  for await (const chunk of chunks) {
    if (chunk.length === 0) yield { rests: true };
    let from = 0;
    while (from < chunk.length) {
      const found = chunk.indexOf(NEWLINE, from);
      const end = found < 0 ? chunk.length : found;
      length += end - from;
      if (length <= limit) parts.push(chunk.subarray(from, end));
      else parts = [];
      from = end + 1;
      if (found < 0) continue;
      yield* take(false);
      length = 0;
      line += 1;
    }
  }
  if (length > 0) yield* take(true);
}

function decode(raw: RawLine, onLoss: OnLoss): string {
  const text = raw.bytes.toString('utf8');
  const place = `line ${raw.line}`;
  if (!isUtf8(raw.bytes))
    onLoss({ reason: 'repaired-text', place, detail: 'bytes that are not UTF-8 were replaced by U+FFFD' });
  if (!text.startsWith('\uFEFF')) return text;
  onLoss({ reason: 'repaired-text', place, detail: 'a byte order mark was removed' });
  return text.slice(1);
}

/** Returns the complete values at the start of a text, and the remaining text. */
function completeValues(text: string): { readonly values: readonly unknown[]; readonly rest: string } {
  const values: unknown[] = [];
  let rest = text.trimStart();
  while (rest.startsWith('{') || rest.startsWith('[')) {
    const end = endOfValue(rest, 0);
    const value = end === undefined ? undefined : parseJson(rest.slice(0, end));
    if (end === undefined || value === undefined) break;
    values.push(value);
    rest = rest.slice(end).trimStart();
  }
  return { values, rest: rest.trimEnd() };
}

const MAX_RESTARTS = 64;

/**
 * Returns the record at the end of a line that begins with an incomplete record. Such a line arises
 * when a process dies while writing and another process continues the file.
 */
function recordAtEnd(text: string, isRecord: (record: JsonObject) => boolean): JsonObject | undefined {
  let at = 0;
  for (let tries = 0; tries < MAX_RESTARTS; tries += 1) {
    at = text.indexOf('{"', at + 1);
    if (at < 0) return undefined;
    const value = parseJson(text.slice(at));
    if (isJsonObject(value) && isRecord(value)) return value;
  }
  return undefined;
}

function readUnclean(
  text: string,
  raw: RawLine,
  { onLoss, isRecord }: { readonly onLoss: OnLoss; readonly isRecord: (record: JsonObject) => boolean },
): readonly unknown[] {
  const place = `line ${raw.line}`;
  const { values, rest } = completeValues(text);
  if (values.length > 1 || (values.length === 1 && rest !== '')) {
    onLoss({ reason: 'repaired-text', place, detail: `${values.length} values on one line were read separately` });
  }
  if (rest === '') return values;
  const torn = raw.last && /^[{[]/.test(rest);
  const behind = torn ? undefined : recordAtEnd(rest, isRecord);
  if (torn) {
    onLoss({ reason: 'truncated-file', place, detail: `the file ends inside a record: ${excerpt(rest)}` });
  } else {
    onLoss({
      reason: raw.bytes.includes(NUL) ? 'binary' : 'malformed-record',
      place,
      detail: `not JSON: ${excerpt(rest)}`,
    });
  }
  return behind === undefined ? values : [...values, behind];
}

/**
 * Streams the objects of a file of JSON lines in order, with one line in memory at a time. It
 * separates several objects on a line, removes a byte order mark and `\r`, and skips empty lines.
 *
 * Anything else is left out or repaired, and reported to `onLoss` as `malformed-record`, `binary`
 * or `repaired-text`. An incomplete last line is reported as `truncated-file`.
 */
export async function* readJsonLines(
  chunks: AsyncIterable<Buffer>,
  onLoss: OnLoss,
  options: JsonLinesOptions = {},
): AsyncIterable<JsonLine> {
  for await (const line of readGrowingLines(chunks, onLoss, options)) if (!('rests' in line)) yield line;
}

/** Streams like `readJsonLines`. Also yields `LinesRest` at the current end of a growing file. */
export async function* readGrowingLines(
  chunks: AsyncIterable<Buffer>,
  onLoss: OnLoss,
  { maxLineBytes = MAX_LINE_BYTES, isRecord = () => false }: JsonLinesOptions = {},
): AsyncIterable<JsonLine | LinesRest> {
  for await (const raw of splitLines(chunks, maxLineBytes, onLoss)) {
    if ('rests' in raw) {
      yield raw;
      continue;
    }
    const text = decode(raw, onLoss);
    if (text.trim() === '') continue;
    const whole = parseJson(text, Number.POSITIVE_INFINITY);
    const place = `line ${raw.line}`;
    if (isDeeperThan(whole, MAX_DEPTH)) {
      onLoss({ reason: 'malformed-record', place, detail: `nested over ${MAX_DEPTH} deep: left out` });
      continue;
    }
    for (const value of whole === undefined ? readUnclean(text, raw, { onLoss, isRecord }) : [whole]) {
      if (isJsonObject(value)) yield { record: value, line: raw.line, place };
      else onLoss({ reason: 'malformed-record', place, detail: `not an object: ${excerpt(JSON.stringify(value))}` });
    }
  }
}
