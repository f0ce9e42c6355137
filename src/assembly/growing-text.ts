import { createHash, type Hash } from 'node:crypto';
import { DocumentError } from '../objects/errors.js';
import type { Sha256 } from '../objects/ids.js';

/** A piece of a text: its UTF-8 bytes, and its length in UTF-16 units. */
export interface TextPiece {
  readonly bytes: Uint8Array;
  readonly chars: number;
}

/**
 * Returns a text as a piece.
 * @throws {DocumentError} for a lone surrogate
 */
export function pieceOf(text: string): TextPiece {
  if (!text.isWellFormed())
    throw new DocumentError('lone-surrogate', 'the text contains a lone surrogate; make it well-formed first');
  return { bytes: Buffer.from(text), chars: text.length };
}

/** Bytes between two saved states of the hash. */
const MARK_BYTES = 65_536;
const LINE_END = 10;

/**
 * A text of pieces joined by line breaks that mostly changes near its end. A change costs only the
 * pieces after it. The hash continues from the last saved state before the change.
 */
export class GrowingText {
  #bytes = Buffer.allocUnsafe(MARK_BYTES);
  /** The end of each piece in bytes and in UTF-16 units. A missing piece ends where it begins. */
  readonly #ends: number[] = [];
  readonly #charEnds: number[] = [];
  readonly #hashes: { readonly upTo: number; readonly hash: Hash }[] = [];

  /** Number of pieces, including missing ones. */
  get size(): number {
    return this.#ends.length;
  }

  get chars(): number {
    return this.#charEnds.at(-1) ?? 0;
  }

  get byteLength(): number {
    return this.#ends.at(-1) ?? 0;
  }

  /** Returns a copy of the piece at a place. Undefined for a missing piece. */
  pieceAt(place: number): TextPiece | undefined {
    const [from, chars] = [this.#start(place, this.#ends), this.#start(place, this.#charEnds)];
    const [to = from, charsTo = chars] = [this.#ends[place], this.#charEnds[place]];
    if (to === from) return undefined;
    const between = from === 0 ? 0 : 1;
    return { bytes: Buffer.from(this.#bytes.subarray(from + between, to)), chars: charsTo - chars - between };
  }

  /** Returns the UTF-16 offset at which the piece at a place begins. */
  offsetOf(place: number): number {
    const before = this.#start(place, this.#charEnds);
    return before === 0 ? 0 : before + 1;
  }

  /** Replaces all pieces from a place to the end. */
  replaceFrom(place: number, pieces: readonly (TextPiece | undefined)[]): void {
    if (place === this.size && pieces.length === 0) return;
    this.#ends.length = place;
    this.#charEnds.length = place;
    let [at, chars] = [this.byteLength, this.chars];
    while ((this.#hashes.at(-1)?.upTo ?? 0) > at) this.#hashes.pop();
    this.#reserve(at + pieces.reduce((sum, piece) => sum + (piece === undefined ? 0 : piece.bytes.length + 1), 0));
    for (const piece of pieces) {
      if (piece !== undefined) {
        if (at > 0) {
          this.#bytes[at] = LINE_END;
          at += 1;
          chars += 1;
        }
        this.#bytes.set(piece.bytes, at);
        at += piece.bytes.length;
        chars += piece.chars;
      }
      this.#ends.push(at);
      this.#charEnds.push(chars);
    }
  }

  /** Adds the whole text to a hash. */
  addTo(hash: Hash): void {
    hash.update(this.#bytes.subarray(0, this.byteLength));
  }

  /** Returns the SHA-256 of the UTF-8 bytes. */
  sha256(): Sha256 {
    const { byteLength } = this;
    let { upTo, hash } = this.#hashes.at(-1) ?? { upTo: 0, hash: createHash('sha256') };
    while (byteLength - upTo >= MARK_BYTES) {
      hash = hash.copy().update(this.#bytes.subarray(upTo, upTo + MARK_BYTES));
      upTo += MARK_BYTES;
      this.#hashes.push({ upTo, hash });
    }
    return hash.copy().update(this.#bytes.subarray(upTo, byteLength)).digest('hex') as Sha256;
  }

  #start(place: number, ends: readonly number[]): number {
    return place === 0 ? 0 : (ends[place - 1] ?? 0);
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * bytes);
    this.#bytes.copy(larger);
    this.#bytes = larger;
  }
}
