import { createHash, hash } from 'node:crypto';
import { canonicalFields } from './canonical-json.js';
import { DocumentError } from './errors.js';
import type { Sha256 } from './ids.js';
import type { ObjectType } from './object-type.js';
import type { Source } from './source.js';

/** SHA-256 of bytes as they are: what `file_hash` is [§2.4, decision A3]. */
export function hashBytes(bytes: Uint8Array): Sha256 {
  return hash('sha256', bytes) as Sha256;
}

/** The long texts that were hashed last: the file that a call read, its content and the call's output are often one text. */
const recent: { readonly text: string; readonly hash: Sha256 }[] = [];
const REMEMBERED = { texts: 4, from: 4_096, upto: 2_097_152 } as const;

const isRemembered = ({ length }: string): boolean => length >= REMEMBERED.from && length <= REMEMBERED.upto;

function remember(text: string, known: Sha256): void {
  if (!isRemembered(text)) return;
  recent.unshift({ text, hash: known });
  recent.length = Math.min(recent.length, REMEMBERED.texts);
}

function requireWellFormed(text: string): void {
  if (!text.isWellFormed())
    throw new DocumentError('lone-surrogate', 'the text holds half a surrogate pair; make it well-formed before hashing');
}

/** SHA-256 of a text's UTF-8 bytes: what `content_hash` is [§2.4]. A lone surrogate is refused, since it would be stored differently. */
export function hashText(text: string): Sha256 {
  const known = text.length < REMEMBERED.from ? undefined : recent.find((entry) => entry.text === text);
  if (known !== undefined) return known.hash;
  requireWellFormed(text);
  const digest = hash('sha256', text) as Sha256;
  remember(text, digest);
  return digest;
}

/** How much of a text is encoded at once. */
const PIECE_UNITS = 32_768;
const piece = Buffer.allocUnsafe(3 * PIECE_UNITS);

const endsInPair = (text: string, end: number): boolean => (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;

/**
 * SHA-256 of the UTF-8 bytes of texts one after another, without putting them together and without a copy of their bytes: for what is large and hashed once.
 * A lone surrogate is refused.
 */
export function hashTexts(texts: Iterable<string>): Sha256 {
  const digest = createHash('sha256');
  for (const text of texts) {
    requireWellFormed(text);
    for (let from = 0; from < text.length; ) {
      const end = Math.min(from + PIECE_UNITS, text.length);
      const to = endsInPair(text, end) ? end - 1 : end;
      digest.update(piece.subarray(0, piece.write(text.slice(from, to))));
      from = to;
    }
  }
  return digest.digest('hex') as Sha256;
}

/** SHA-256 of the UTF-8 bytes of a text that grows: what it had before is not hashed again. A lone surrogate is refused. */
export class GrowingHash {
  readonly #digest = createHash('sha256');
  #chars = 0;

  /** How long the text is, in UTF-16 units. */
  get chars(): number {
    return this.#chars;
  }

  add(text: string): void {
    requireWellFormed(text);
    this.#digest.update(text, 'utf8');
    this.#chars += text.length;
  }

  /** The hash of the text with an end behind it, which does not stay. */
  with(end: string): Sha256 {
    requireWellFormed(end);
    return this.#digest.copy().update(end, 'utf8').digest('hex') as Sha256;
  }
}

/** The long text that came last from bytes, with them: a file that was read is written to the journal within the same call. */
let newest: { readonly text: string; readonly bytes: Buffer } | undefined;

/**
 * The text of bytes that are valid UTF-8, and the SHA-256 of both: `file_hash` and `content_hash` of a text file are the same [§2.4]. The bytes must stay as they are:
 * `utf8Of` may hand them out.
 */
export function hashedText(bytes: Buffer): { readonly text: string; readonly hash: Sha256 } {
  const text = bytes.toString('utf8');
  const digest = hashBytes(bytes);
  remember(text, digest);
  newest = isRemembered(text) ? { text, bytes } : undefined;
  return { text, hash: digest };
}

/** The UTF-8 bytes of a well-formed text, to be read only: those of the last text of `hashedText` are not made again, and kept no longer. */
export function utf8Of(text: string): Buffer {
  if (newest === undefined || newest.text !== text) return Buffer.from(text);
  const { bytes } = newest;
  newest = undefined;
  return bytes;
}

/** Identities of files by their bindings, which never change: one call asks for the same one many times. */
const identities = new WeakMap<Source, Sha256>();

/** `identity_hash` of a sourced object: over its type and source binding; it is its `xt/id` too [§2.4, §2.5]. */
export function sourcedIdentityHash(type: ObjectType, source: Source): Sha256 {
  const known = type === 'file' ? identities.get(source) : undefined;
  if (known !== undefined) return known;
  const { filesystemId, path, type: kind } = source;
  requireWellFormed(filesystemId);
  requireWellFormed(path);
  // The bytes of canonical JSON: in the order of the names.
  const identity = hashText(JSON.stringify({ source: { filesystemId, path, type: kind }, type }));
  if (type === 'file' && Object.isFrozen(source)) identities.set(source, identity);
  return identity;
}

/** `identity_hash` of an unsourced object: over its type and assigned id [§2.4, §2.5]. */
export function assignedIdentityHash(type: ObjectType, id: string): Sha256 {
  requireWellFormed(id);
  // The bytes of canonical JSON: in the order of the names.
  return hashText(JSON.stringify({ type, 'xt/id': id }));
}

/** `metadata_hash`: over the type-specific fields alone, those that are present [§2.4, §2.6, decision A2]. Freezes objects that stand in lists. */
export function metadataHash(fields: object): Sha256 {
  return hashText(canonicalFields(fields));
}

/** `object_hash`: over the three hashes of a version; nulls stay nulls [§2.4]. A fingerprint, not a version's address (decision A7). */
export function objectHash(parts: {
  readonly file_hash: Sha256 | null;
  readonly content_hash: Sha256 | null;
  readonly metadata_hash: Sha256;
}): Sha256 {
  const { file_hash, content_hash, metadata_hash } = parts;
  // The bytes of canonical JSON: in the order of their names, hex digits and nulls.
  return hashText(JSON.stringify({ content_hash, file_hash, metadata_hash }));
}
