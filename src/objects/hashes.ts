import { createHash, hash } from 'node:crypto';
import { canonicalFields } from './canonical-json.js';
import { DocumentError } from './errors.js';
import type { Sha256 } from './ids.js';
import type { ObjectType } from './object-type.js';
import type { Source } from './source.js';

/** Returns the SHA-256 of raw bytes, as used for `file_hash` [§2.4, decision A3]. */
export function hashBytes(bytes: Uint8Array): Sha256 {
  return hash('sha256', bytes) as Sha256;
}

/**
 * The long texts hashed last. The file that a call read, its content and the call's output are
 * often the same text.
 */
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
    throw new DocumentError('lone-surrogate', 'the text contains a lone surrogate; make it well-formed before hashing');
}

/**
 * Returns the SHA-256 of a text's UTF-8 bytes, as used for `content_hash` [§2.4]. Rejects a lone
 * surrogate, because it would be stored differently.
 */
export function hashText(text: string): Sha256 {
  const known = text.length < REMEMBERED.from ? undefined : recent.find((entry) => entry.text === text);
  if (known !== undefined) return known.hash;
  requireWellFormed(text);
  const digest = hash('sha256', text) as Sha256;
  remember(text, digest);
  return digest;
}

/** UTF-16 units encoded at once. */
const PIECE_UNITS = 32_768;
const piece = Buffer.allocUnsafe(3 * PIECE_UNITS);

const endsInPair = (text: string, end: number): boolean => (text.charCodeAt(end - 1) & 0xfc00) === 0xd800;

/**
 * Returns the SHA-256 of the UTF-8 bytes of consecutive texts without joining or copying them.
 * Meant for large data that is hashed once. Rejects a lone surrogate.
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

/** Incremental SHA-256 of the UTF-8 bytes of a growing text. Rejects a lone surrogate. */
export class GrowingHash {
  readonly #digest = createHash('sha256');
  #chars = 0;

  /** Length of the text in UTF-16 units. */
  get chars(): number {
    return this.#chars;
  }

  add(text: string): void {
    requireWellFormed(text);
    this.#digest.update(text, 'utf8');
    this.#chars += text.length;
  }

  /** Returns the hash of the text followed by `end`, without appending it. */
  with(end: string): Sha256 {
    requireWellFormed(end);
    return this.#digest.copy().update(end, 'utf8').digest('hex') as Sha256;
  }
}

/**
 * The last long text decoded from bytes, with its bytes. A call that reads a file also writes its
 * text to the journal.
 */
let newest: { readonly text: string; readonly bytes: Buffer } | undefined;

/**
 * Decodes valid UTF-8 and returns the text with the SHA-256 of its bytes. A text file has equal
 * `file_hash` and `content_hash` [§2.4]. The caller must not change the bytes: `utf8Of` may return
 * them.
 */
export function hashedText(bytes: Buffer): { readonly text: string; readonly hash: Sha256 } {
  const text = bytes.toString('utf8');
  const digest = hashBytes(bytes);
  remember(text, digest);
  newest = isRemembered(text) ? { text, bytes } : undefined;
  return { text, hash: digest };
}

/**
 * Returns the read-only UTF-8 bytes of a well-formed text. It reuses the bytes of the last
 * `hashedText` once and then releases them.
 */
export function utf8Of(text: string): Buffer {
  if (newest === undefined || newest.text !== text) return Buffer.from(text);
  const { bytes } = newest;
  newest = undefined;
  return bytes;
}

/** Identities of files by their immutable bindings. One call needs the same identity many times. */
const identities = new WeakMap<Source, Sha256>();

/**
 * Returns the `identity_hash` of a sourced object: the hash of its type and source binding. It is
 * also its `xt/id` [§2.4, §2.5].
 */
export function sourcedIdentityHash(type: ObjectType, source: Source): Sha256 {
  const known = type === 'file' ? identities.get(source) : undefined;
  if (known !== undefined) return known;
  const { filesystemId, path, type: kind } = source;
  requireWellFormed(filesystemId);
  requireWellFormed(path);
  // Keys in alphabetical order, as in canonical JSON.
  const identity = hashText(JSON.stringify({ source: { filesystemId, path, type: kind }, type }));
  if (type === 'file' && Object.isFrozen(source)) identities.set(source, identity);
  return identity;
}

/**
 * Returns the `identity_hash` of an unsourced object: the hash of its type and assigned id [§2.4,
 * §2.5].
 */
export function assignedIdentityHash(type: ObjectType, id: string): Sha256 {
  requireWellFormed(id);
  // Keys in alphabetical order, as in canonical JSON.
  return hashText(JSON.stringify({ type, 'xt/id': id }));
}

/**
 * Returns the `metadata_hash`: the hash of the type-specific fields that are present [§2.4, §2.6,
 * decision A2]. Freezes objects in lists.
 */
export function metadataHash(fields: object): Sha256 {
  return hashText(canonicalFields(fields));
}

/**
 * Returns the `object_hash`: the hash of the three hashes of a version, nulls included [§2.4]. It
 * is a fingerprint, not a version's address (decision A7).
 */
export function objectHash(parts: {
  readonly file_hash: Sha256 | null;
  readonly content_hash: Sha256 | null;
  readonly metadata_hash: Sha256;
}): Sha256 {
  const { file_hash, content_hash, metadata_hash } = parts;
  // Keys in alphabetical order, as in canonical JSON.
  return hashText(JSON.stringify({ content_hash, file_hash, metadata_hash }));
}
