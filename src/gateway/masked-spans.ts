import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { maskedPiece, NO_MASK, type RecordMask } from '../client/record-mask.js';
import { isSecretName } from '../redaction/secret-names.js';
import { bodySpans } from './body-spans.js';

/** Number of bytes before a long string in which its name is searched for. */
const NAME_BYTES = 200;
const NAME_BEFORE = /"([^"\\]{1,100})"\s*:\s*"$/;

/** Returns a span with marks in place of secrets. */
function maskedSpan(mask: RecordMask, spans: readonly Buffer[], i: number): Buffer {
  const span = spans[i] ?? Buffer.alloc(0);
  const text = span.toString('utf8');
  let masked = maskedPiece(mask, text);
  // A long string is a separate span, so its name is in the previous span.
  const name = NAME_BEFORE.exec(spans[i - 1]?.subarray(-NAME_BYTES).toString('latin1') ?? '')?.[1];
  if (name !== undefined && isSecretName(name)) {
    const named = `"${name}":"`;
    const whole = mask.text(`${named}${masked}"`);
    if (whole.startsWith(named) && whole.endsWith('"')) masked = whole.slice(named.length, -1);
  }
  return masked === text ? span : Buffer.from(masked);
}

/**
 * A body as the log stores it. With a mask, secrets become marks. A body that is not text, such as
 * one that this Node cannot decode, is left out, because it cannot be masked.
 */
export class LoggedBody {
  readonly #mask: RecordMask;
  readonly #spans: readonly Buffer[];
  readonly #keys: readonly string[];
  readonly #kept = new Map<number, Buffer>();

  constructor(mask: RecordMask, body: Buffer) {
    this.#mask = mask;
    this.#spans = bodySpans(mask === NO_MASK || isUtf8(body) ? body : Buffer.alloc(0));
    this.#keys = this.#spans.map((span) => hash('sha256', span, 'base64'));
  }

  /** The hash of each span before masking. */
  get keys(): readonly string[] {
    return this.#keys;
  }

  /** Returns the bytes to store of a span. Masks each span once. */
  kept(i: number): Buffer {
    const known = this.#kept.get(i);
    if (known !== undefined) return known;
    const made = this.#mask === NO_MASK ? (this.#spans[i] ?? Buffer.alloc(0)) : maskedSpan(this.#mask, this.#spans, i);
    this.#kept.set(i, made);
    return made;
  }
}
