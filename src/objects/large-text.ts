import { splitsPair } from '../values/surrogate-pairs.js';

/**
 * Maximum UTF-8 bytes of a text that `content` holds whole. A longer text is abridged there and
 * stored as chunks (divergence C6). Fixed, so that two clients never differ.
 */
export const LARGE_TEXT_BYTES = 1_048_576;
/** UTF-16 units of the longest chunk (decision G5). */
export const CHUNK_UNITS = 524_288;
/** UTF-16 units kept from the beginning of a large text (decision C6). */
export const HEAD_UNITS = 65_536;
/** UTF-16 units kept from the end of a large text (decision C6). */
export const TAIL_UNITS = 16_384;

/** The abridged form of a large text in `content` (decision C6). */
export interface Abridged {
  /** Head, the line `[... N characters omitted ...]`, tail. */
  readonly content: string;
  /** The beginning of the text, unchanged. */
  readonly head: string;
  /** The end of the text, unchanged. */
  readonly tail: string;
  /** UTF-16 units of the text that are in neither the head nor the tail. */
  readonly omitted: number;
}

/** Returns whether a text exceeds the cap of decision C6 and must be abridged. */
export function isLargeText(text: string): boolean {
  if (text.length > LARGE_TEXT_BYTES) return true;
  return text.length * 3 > LARGE_TEXT_BYTES && Buffer.byteLength(text) > LARGE_TEXT_BYTES;
}

/**
 * Returns the kept part of `start`: at most 65,536 units. Prefers a cut at a line end in the second
 * half.
 */
function headOf(start: string): string {
  if (start.length <= HEAD_UNITS) return start;
  const lineEnd = start.lastIndexOf('\n', HEAD_UNITS - 1) + 1;
  if (lineEnd >= HEAD_UNITS / 2) return start.slice(0, lineEnd);
  return start.slice(0, splitsPair(start, HEAD_UNITS) ? HEAD_UNITS - 1 : HEAD_UNITS);
}

/**
 * Returns the kept part of `end`: at most 16,384 units. Prefers a cut at a line start in the first
 * half.
 */
function tailOf(end: string): string {
  if (end.length <= TAIL_UNITS) return end;
  const first = end.length - TAIL_UNITS;
  const lineStart = end.indexOf('\n', first - 1) + 1;
  if (lineStart > 0 && end.length - lineStart >= TAIL_UNITS / 2) return end.slice(lineStart);
  return end.slice(splitsPair(end, first) ? first + 1 : first);
}

/**
 * Abridges a text if only its beginning and its end are available (decision C6). `start` holds its
 * first units (more than 65,536), `end` its last (more than 16,384). `length` is the length of the
 * whole text in units.
 *
 * A cut is at a line end if the nearer half of the kept part has one. It never splits a surrogate
 * pair.
 */
export function abridgeEnds(start: string, end: string, length: number): Abridged {
  const head = headOf(start);
  const tail = tailOf(end);
  const omitted = length - head.length - tail.length;
  const gap = head === '' || head.endsWith('\n') ? '' : '\n';
  return { content: `${head}${gap}[... ${omitted} characters omitted ...]\n${tail}`, head, tail, omitted };
}

/**
 * Returns head and tail of a text (decision C6). A text no longer than both together is returned
 * whole, with nothing omitted.
 */
export function abridge(text: string): Abridged {
  if (text.length <= HEAD_UNITS + TAIL_UNITS) return { content: text, head: text, tail: '', omitted: 0 };
  return abridgeEnds(text.slice(0, HEAD_UNITS + 1), text.slice(-(TAIL_UNITS + 2)), text.length);
}

/**
 * Cuts a text that arrives in pieces into chunks of at most 524,288 UTF-16 units (decision G5). The
 * cuts depend on the text alone, not on the pieces. No chunk is empty or splits a surrogate pair.
 */
export function* chunkPieces(pieces: Iterable<string>): Generator<string> {
  let rest = '';
  for (const piece of pieces) {
    rest += piece;
    // One unit beyond the chunk is needed to see whether the cut would split a pair.
    while (rest.length > CHUNK_UNITS) {
      const cut = splitsPair(rest, CHUNK_UNITS) ? CHUNK_UNITS - 1 : CHUNK_UNITS;
      yield rest.slice(0, cut);
      rest = rest.slice(cut);
    }
  }
  if (rest !== '') yield rest;
}

/** Cuts a whole text into chunks (decision G5); see {@link chunkPieces}. */
export function chunkText(text: string): Generator<string> {
  return chunkPieces([text]);
}
