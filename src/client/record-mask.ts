import type { Json } from '../objects/canonical-json.js';
import type { ContextRecord } from '../objects/context-record.js';
import { hashText } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import type { FoundSecrets } from '../redaction/stored-marks.js';
import { defined } from '../values/defined.js';

/** Replaces secrets by marks before anything is recorded (decision 0026). */
export interface RecordMask {
  /** Replaces the secrets in a text by marks, and adds them to `found`. */
  text(text: string, found?: FoundSecrets): string;
  /** Replaces the secrets in the texts of a JSON value by marks. */
  value(value: Json, found?: FoundSecrets): Json;
  /** Whether the tool results that agents get are masked, too. */
  readonly inAnswers?: boolean;
  /**
   * Replaces the secrets in `found` and single lines of them, which the rules alone may not detect.
   */
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

/**
 * Returns the unescaped text of a piece of a JSON string. Undefined if it has no escapes or is not
 * one string.
 */
function textInside(piece: string): string | undefined {
  if (!piece.includes('\\')) return undefined;
  try {
    return JSON.parse(`"${piece}"`) as string;
  } catch {
    return undefined;
  }
}

/**
 * Masks a piece of a JSON body. A long string is its own piece, without quotes. The mask's rules
 * read it unescaped, because they need its line ends.
 */
export function maskedPiece(mask: RecordMask, piece: string): string {
  const inside = textInside(piece);
  if (inside === undefined) return mask.text(piece);
  const masked = mask.text(inside);
  return masked === inside ? piece : JSON.stringify(masked).slice(1, -1);
}

/**
 * Masks the secrets in a sent body. The division into pieces stays, unless a secret spans two of
 * them.
 */
export function maskedBody(mask: RecordMask, body: readonly string[]): readonly string[] {
  const pieces = body.map((piece) => maskedPiece(mask, piece));
  // This costs little, because the mask caches texts and a body mostly repeats the previous one.
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

/** Masks the secrets in records and in the texts that they refer to by hash. */
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
