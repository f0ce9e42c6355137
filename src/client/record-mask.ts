import type { Json } from '../objects/canonical-json.js';
import type { ContextRecord } from '../objects/context-record.js';
import { hashText } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import type { FoundSecrets } from '../redaction/stored-marks.js';
import { defined } from '../values/defined.js';

/** Replaces secrets by marks before anything is recorded (decision 0026). */
export interface RecordMask {
  /** Returns a text with marks. Adds the secrets to `found`. */
  text(text: string, found?: FoundSecrets): string;
  /** Returns a JSON value with marks in its texts. */
  value(value: Json, found?: FoundSecrets): Json;
  /** Whether agents also get the results of their tools with marks. */
  readonly inAnswers?: boolean;
  /** Replaces secrets that were found elsewhere, and their lines. */
  withoutRepeated(text: string, found: FoundSecrets): string;
}

/** Loads the mask of recorded text. Undefined if text is recorded unchanged. */
export type MaskLoader = () => Promise<RecordMask | undefined>;

/** Masks nothing. */
export const NO_MASK: RecordMask = {
  text: (text) => text,
  value: (value) => value,
  withoutRepeated: (text) => text,
};

/** Returns the text of a piece inside a JSON string; undefined if the piece is more than that. */
function textInside(piece: string): string | undefined {
  if (!piece.includes('\\')) return undefined;
  try {
    return JSON.parse(`"${piece}"`) as string;
  } catch {
    return undefined;
  }
}

/**
 * Returns a piece of a JSON body with marks. A long string is a piece without its quotes. The rules
 * need its line endings, so they read it without escapes.
 */
export function maskedPiece(mask: RecordMask, piece: string): string {
  const inside = textInside(piece);
  if (inside === undefined) return mask.text(piece);
  const masked = mask.text(inside);
  return masked === inside ? piece : JSON.stringify(masked).slice(1, -1);
}

/** Masks the secrets in a sent body. Its pieces stay, unless a secret spans two of them. */
export function maskedBody(mask: RecordMask, body: readonly string[]): readonly string[] {
  const pieces = body.map((piece) => maskedPiece(mask, piece));
  // A body usually repeats the pieces of the one before, so their pairs are masked already.
  const isSpanned = pieces.some((piece, i) => {
    const both = `${pieces[i - 1]}${piece}`;
    return i > 0 && mask.text(both) !== both;
  });
  return isSpanned ? [mask.text(pieces.join(''))] : pieces;
}

/** Returns a JSON value in which hashes of masked texts are replaced. */
function renamed(value: Json, hashes: ReadonlyMap<string, string>): Json {
  if (typeof value === 'string') return hashes.get(value) ?? value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => renamed(one, hashes));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, renamed(one as Json, hashes)]));
}

/** Masks the secrets in records and in the texts that they name by hash. */
export function maskedRecords(
  mask: RecordMask,
  records: readonly ContextRecord[],
  texts: readonly string[],
): { readonly records: readonly ContextRecord[]; readonly texts: readonly string[] } {
  if (mask === NO_MASK) return { records, texts };
  const found: FoundSecrets = new Map();
  const stored = texts.map((text) => mask.text(text, found));
  const hashes = new Map<string, string>();
  for (const [i, text] of texts.entries()) {
    const masked = stored[i] ?? text;
    if (masked !== text) hashes.set(hashText(text), hashText(masked));
  }
  const masked = records.map((record) => {
    const { body, texts: named } = record;
    const kept = renamed(mask.value(body as Json, found), hashes);
    const own = defined({ texts: named?.map((hash) => (hashes.get(hash) ?? hash) as Sha256) });
    return { ...record, ...own, body: kept } as ContextRecord;
  });
  return { records: masked, texts: stored };
}
