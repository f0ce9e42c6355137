import { hashText } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import { CHUNK_UNITS, chunkText } from '../objects/large-text.js';
import type { StoredDocument } from '../xtdb/documents.js';

/** UTF-16 units of the longest text that a head or a step holds itself; longer ones are chunk parts, shared by all that hold the same text. */
export const INLINE_UNITS = 2_048;

/** The id of the part that holds a text of at most one chunk (decision G5). */
export const chunkId = (hash: string): string => `chunk:${hash}`;
/** The id of the part that lists the chunks of a longer text in order (decision G5). */
export const chunkListId = (hash: string): string => `chunks:${hash}`;

/** A chunk part: its id is the SHA-256 of its UTF-8, so that it never changes and is stored once. */
export function chunkPart(text: string, hash: Sha256 = hashText(text)): StoredDocument {
  return { 'xt/id': chunkId(hash), type: 'chunk', text };
}

/** The part that names the chunks of a text; `units` is the length of the whole in UTF-16 units. */
export function chunkListPart(hash: string, chunks: readonly string[], units: number): StoredDocument {
  return { 'xt/id': chunkListId(hash), type: 'chunks', size: units, body: { chunks } };
}

/** All parts that hold a text under its own hash: one chunk, or a list and its chunks. */
export function textParts(text: string, hash: Sha256): readonly StoredDocument[] {
  if (text.length <= CHUNK_UNITS) return [chunkPart(text, hash)];
  const parts = [...chunkText(text)].map((chunk) => chunkPart(chunk));
  const ids = parts.map((part) => String(part['xt/id']).slice('chunk:'.length));
  return [chunkListPart(hash, ids, text.length), ...parts];
}
