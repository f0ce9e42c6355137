import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { type BigIntStats, read } from 'node:fs';
import { promisify } from 'node:util';
import { hashBytes, hashedText } from '../../objects/hashes.js';
import { type CanonicalPath, type Sha256, sha256 } from '../../objects/ids.js';
import {
  type Abridged,
  abridgeEnds,
  chunkPieces,
  HEAD_UNITS,
  LARGE_TEXT_BYTES,
  TAIL_UNITS,
} from '../../objects/large-text.js';
import type { FilesystemSource } from '../../objects/source.js';
import { systemCode } from '../../process/system-error.js';
import type { FilesystemAccess } from './access.js';
import { SourceError, type SourceErrorCode, sourceErrorFrom } from './errors.js';
import { type IrregularKind, irregularKind, leaveRead, type OpenToRead, openToRead, statsOf } from './open-inside.js';

/**
 * Scans bytes in pieces as text. Records whether they are UTF-8 without NUL (decision C2), their
 * length in UTF-16 units, and head and tail. Memory holds only head and tail, not the text.
 */
class TextScan {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #isText = true;
  #length = 0;
  #start = '';
  #end = '';

  /** Number of UTF-16 units so far. */
  get length(): number {
    return this.#length;
  }

  /** Adds the next bytes. */
  push(bytes: Uint8Array): void {
    if (bytes.includes(0)) this.#isText = false;
    this.#take(() => this.#decoder.decode(bytes, { stream: true }));
  }

  /**
   * Ends the scan. Returns head and tail of the text (decision C6), or `undefined` if the bytes are
   * not text.
   */
  end(): Abridged | undefined {
    this.#take(() => this.#decoder.decode());
    return this.#isText ? abridgeEnds(this.#start, this.#end, this.#length) : undefined;
  }

  #take(decode: () => string): void {
    if (!this.#isText) return;
    try {
      const text = decode();
      this.#length += text.length;
      if (this.#start.length <= HEAD_UNITS) this.#start += text.slice(0, HEAD_UNITS + 1 - this.#start.length);
      this.#end = (this.#end + text.slice(-(TAIL_UNITS + 2))).slice(-(TAIL_UNITS + 2));
    } catch {
      this.#isText = false;
    }
  }
}

const HASHED_PIECE_BYTES = 256 * 1024;

/**
 * Hashes as many bytes as the file had when it was opened. Returns undefined if it has fewer now or
 * is not a regular file.
 */
async function hashOpen({ fd, stats }: OpenToRead, signal: AbortSignal | undefined): Promise<Sha256 | undefined> {
  if (irregularKind(stats) !== undefined) return undefined;
  const size = Number(stats.size);
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.min(HASHED_PIECE_BYTES, size));
  for (let done = 0; done < size; done += buffer.length) {
    signal?.throwIfAborted();
    const piece = buffer.subarray(0, size - done);
    if ((await fill(fd, piece, done)) < piece.length) return undefined;
    hash.update(piece);
  }
  return sha256(hash.digest('hex'));
}

/**
 * Returns the SHA-256 of a source's bytes (decision A3) in bounded memory, for any size. Use it
 * only to check that a source still has a known hash, because it ignores concurrent writes. Returns
 * undefined if the hash cannot be computed; `readSource` then gives the reason. Rejects only on an
 * abort of `signal`.
 */
export async function hashSource(
  access: FilesystemAccess,
  source: FilesystemSource,
  signal?: AbortSignal,
): Promise<Sha256 | undefined> {
  signal?.throwIfAborted();
  if (!access.mounts.isReachable(source.path, source.filesystemId)) return undefined;
  let opened: OpenToRead | undefined;
  try {
    opened = await openToRead(access.roots, source.path);
    return await hashOpen(opened, signal);
  } catch (error) {
    if (error instanceof SourceError || systemCode(error) !== undefined) return undefined;
    throw error;
  } finally {
    if (opened !== undefined) leaveRead(opened);
  }
}

/** A larger text is kept as head and tail only (decision C6). */
const WHOLE_TEXT_BYTES = 64 * 1024 * 1024;

/** Properties of every readable file, taken from one open file in one read. */
interface Readable {
  /** SHA-256 of the raw bytes [§2.4, decision A3]. */
  readonly fileHash: Sha256;
  /** Number of bytes read. */
  readonly size: number;
  /** Time of the last modification, in whole milliseconds. */
  readonly mtimeMs: number;
}

/** UTF-8 text of at most 1,048,576 bytes; `content` is exactly its decoded bytes. */
export interface TextReading extends Readable {
  readonly kind: 'text';
  readonly content: string;
}

/** UTF-8 text of more than 1,048,576 bytes (decision C6). */
export interface LargeTextReading extends Readable {
  readonly kind: 'large-text';
  /** Head, marker line and tail of the text. */
  readonly content: string;
  /** UTF-16 units of the whole text. */
  readonly length: number;
  /**
   * Yields the whole text in chunks of at most 524,288 UTF-16 units; may be called repeatedly.
   * `undefined` above 64 MiB.
   */
  readonly chunks: (() => Iterable<string>) | undefined;
}

/** Bytes that are not UTF-8, or contain a NUL (decision C2). */
export interface BinaryReading extends Readable {
  readonly kind: 'binary';
}

/**
 * Why a source cannot be read although it may exist (decision C5). Its object becomes orphaned and
 * the last version stays [§5.9].
 */
export type UnreachableReason =
  | 'no-permission'
  | 'io'
  | 'mount-absent'
  | 'foreign-filesystem'
  | 'outside-roots'
  | 'loop'
  | 'invalid-path';

/** A reading with text. */
export type ReadingWithText = TextReading | LargeTextReading;

/** Returns whether a reading has text. */
export const hasText = (reading: SourceReading): reading is ReadingWithText =>
  reading.kind === 'text' || reading.kind === 'large-text';

/** The result of reading a source. Only `missing` means deleted. */
export type SourceReading =
  | TextReading
  | LargeTextReading
  | BinaryReading
  /** Deleted, while its root or mount is present. */
  | { readonly kind: 'missing' }
  | { readonly kind: 'unreachable'; readonly reason: UnreachableReason }
  | { readonly kind: 'not-regular'; readonly what: IrregularKind };

const PIECE_BYTES = 1024 * 1024;
const ATTEMPTS = 3;

/**
 * Reads a source's bytes once and derives hash and content from them (decisions C1 to C6). Reports
 * faults of a file by `kind` and never throws them. Rejects only on an abort of `signal`. A file
 * that changes during the read is read again, up to three times. If it keeps changing, the last
 * read counts, cut to the file's size at the start of that read.
 */
export async function readSource(
  access: FilesystemAccess,
  source: FilesystemSource,
  options: { readonly signal?: AbortSignal } = {},
): Promise<SourceReading> {
  if (!access.mounts.isReachable(source.path, source.filesystemId))
    return { kind: 'unreachable', reason: 'foreign-filesystem' };
  for (let attempt = 1; ; attempt += 1) {
    options.signal?.throwIfAborted();
    const last = attempt === ATTEMPTS;
    try {
      const reading = await readOnce(access, source.path, { acceptChanged: last, signal: options.signal });
      if (reading !== undefined) return reading;
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      if (error.code !== 'changed-underneath' || last) return failedReading(access, source.path, error);
    }
  }
}

/**
 * Makes one attempt. Returns `undefined` if the file changed during the read and `acceptChanged` is
 * false.
 */
async function readOnce(
  access: FilesystemAccess,
  path: CanonicalPath,
  { acceptChanged, signal }: { readonly acceptChanged: boolean; readonly signal: AbortSignal | undefined },
): Promise<SourceReading | undefined> {
  const opened = await openToRead(access.roots, path);
  try {
    const { stats } = opened;
    const what = irregularKind(stats);
    if (what !== undefined) return { kind: 'not-regular', what };
    const reading = stats.size <= LARGE_TEXT_BYTES ? await readSmall(opened) : await readLarge(opened, signal);
    const after = statsOf(opened);
    return acceptChanged || (sameVersion(stats, after) && reading.size === Number(after.size)) ? reading : undefined;
  } catch (error) {
    throw sourceErrorFrom(error, path);
  } finally {
    leaveRead(opened);
  }
}

function sameVersion(before: BigIntStats, after: BigIntStats): boolean {
  return before.mtimeNs === after.mtimeNs && before.size === after.size;
}

const milliseconds = (stats: BigIntStats): number => Number(stats.mtimeNs / 1_000_000n);

const readThere = promisify(read);

/** Reads until `target` is full or the file ends. Returns the number of bytes read. */
async function fill(fd: number, target: Buffer, position: number): Promise<number> {
  let filled = 0;
  while (filled < target.length) {
    const { bytesRead } = await readThere(fd, target, filled, target.length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

async function readSmall({ fd, stats }: OpenToRead): Promise<TextReading | BinaryReading> {
  const buffer = Buffer.allocUnsafe(Number(stats.size));
  const filled = await fill(fd, buffer, 0);
  return smallReading(buffer.subarray(0, filled), stats);
}

function smallReading(bytes: Buffer, stats: BigIntStats): TextReading | BinaryReading {
  const readable = { size: bytes.length, mtimeMs: milliseconds(stats) };
  if (bytes.includes(0) || !isUtf8(bytes)) return { kind: 'binary', fileHash: hashBytes(bytes), ...readable };
  const { text, hash } = hashedText(bytes);
  return { kind: 'text', content: text, fileHash: hash, ...readable };
}

async function readLarge(
  { fd, stats }: OpenToRead,
  signal: AbortSignal | undefined,
): Promise<LargeTextReading | TextReading | BinaryReading> {
  const size = Number(stats.size);
  const keep = size <= WHOLE_TEXT_BYTES;
  const buffer = Buffer.allocUnsafe(keep ? size : PIECE_BYTES);
  const hash = createHash('sha256');
  const scan = new TextScan();
  let done = 0;
  while (done < size) {
    signal?.throwIfAborted();
    const from = keep ? done : 0;
    const piece = buffer.subarray(from, from + Math.min(PIECE_BYTES, size - done));
    const got = await fill(fd, piece, done);
    hash.update(piece.subarray(0, got));
    scan.push(piece.subarray(0, got));
    done += got;
    if (got < piece.length) break;
  }
  // If the file shrank during the read, the first piece may contain all of it.
  if (done <= LARGE_TEXT_BYTES) return smallReading(buffer.subarray(0, done), stats);
  const readable = { fileHash: sha256(hash.digest('hex')), size: done, mtimeMs: milliseconds(stats) };
  const abridged = scan.end();
  if (abridged === undefined) return { kind: 'binary', ...readable };
  const bytes = buffer.subarray(0, done);
  const chunks = keep ? () => chunkPieces(decodePieces(bytes)) : undefined;
  return { kind: 'large-text', content: abridged.content, length: scan.length, chunks, ...readable };
}

function* decodePieces(bytes: Buffer): Generator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    yield decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: true });
  }
  yield decoder.decode();
}

type Outcome = (access: FilesystemAccess, path: CanonicalPath) => Promise<SourceReading>;

const unreachable =
  (reason: UnreachableReason): Outcome =>
  async () => ({ kind: 'unreachable', reason });
const notRegular =
  (what: IrregularKind): Outcome =>
  async () => ({ kind: 'not-regular', what });

const OUTCOMES: Readonly<Record<SourceErrorCode, Outcome>> = {
  'not-found': async ({ roots }, path) =>
    (await roots.anchorPresent(path)) ? { kind: 'missing' } : { kind: 'unreachable', reason: 'mount-absent' },
  'outside-roots': unreachable('outside-roots'),
  'is-directory': notRegular('directory'),
  // A socket is the only irregular file that cannot be opened.
  'not-regular': notRegular('socket'),
  'not-text': unreachable('io'),
  'no-permission': unreachable('no-permission'),
  unreachable: unreachable('io'),
  'too-large': unreachable('io'),
  'invalid-path': unreachable('invalid-path'),
  loop: unreachable('loop'),
  exists: unreachable('io'),
  // The path, or a folder above it, has become a link.
  'changed-underneath': notRegular('symlink'),
  busy: unreachable('io'),
  io: unreachable('io'),
};

function failedReading(access: FilesystemAccess, path: CanonicalPath, error: SourceError): Promise<SourceReading> {
  return OUTCOMES[error.code](access, path);
}
