import { type Abridged, abridgeEnds, HEAD_UNITS, TAIL_UNITS } from '../../objects/large-text.js';

/**
 * Reads bytes in pieces and keeps what can be said of them as text: whether they are UTF-8 without NUL (decision C2), their length in
 * UTF-16 units, and both ends. Memory is bounded by the ends, not by the text.
 */
export class TextScan {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #isText = true;
  #length = 0;
  #start = '';
  #end = '';

  /** False as soon as something was seen that is not text. */
  get isText(): boolean {
    return this.#isText;
  }

  /** UTF-16 units so far. */
  get length(): number {
    return this.#length;
  }

  /** Takes the next bytes. */
  push(bytes: Uint8Array): void {
    if (!this.#isText) return;
    if (bytes.includes(0)) {
      this.#isText = false;
      return;
    }
    this.#take(() => this.#decoder.decode(bytes, { stream: true }));
  }

  /** Says that no more bytes come; gives head and tail (decision C6), or `undefined` where the bytes are not text. */
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
