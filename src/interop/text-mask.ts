import { RE2JS } from 're2js';
import { CodedError } from '../values/coded-error.js';
import { messageOf } from '../values/thrown.js';
import { MASK } from './masking.js';
import { withoutSecrets } from './secrets.js';

/** Thrown where rules of what is to be hidden cannot be used. */
class MaskError extends CodedError<'malformed-rules'> {
  override readonly name = 'MaskError';
}

/** What is to be hidden wherever it stands. */
export interface MaskRules {
  /** Texts, in every form that they are written in. */
  readonly texts: readonly string[];
  /** What matches one of these. */
  readonly patterns: readonly RE2JS[];
}

/** The shortest text of a rule: shorter ones would be found in everything. */
const LEAST_TEXT = 4;
/** A line of a longer text, the beginning of one at the end of what was cut off, and an encoded form are hidden by themselves from this length on. */
const LEAST_PART = 12;

/**
 * Reads rules: each line a text that is hidden, or a pattern between slashes; empty lines and those that begin with `#` say nothing.
 * @throws {MaskError} `malformed-rules`
 */
export function parseMaskRules(text: string): MaskRules {
  const texts: string[] = [];
  const patterns: RE2JS[] = [];
  for (const [i, whole] of text.split('\n').entries()) {
    const line = whole.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (line.length > 2 && line.startsWith('/') && line.endsWith('/')) {
      let pattern: RE2JS;
      try {
        pattern = RE2JS.compile(line.slice(1, -1));
      } catch (cause) {
        throw new MaskError('malformed-rules', `line ${i + 1} of the rules is no pattern: ${messageOf(cause)}`, { cause });
      }
      if (pattern.matcher('').find())
        throw new MaskError('malformed-rules', `line ${i + 1} of the rules matches where nothing stands: name what is to be hidden`);
      patterns.push(pattern);
    } else if (line.length < LEAST_TEXT)
      throw new MaskError('malformed-rules', `line ${i + 1} of the rules is shorter than ${LEAST_TEXT} characters, which stand everywhere`);
    else texts.push(line);
  }
  return { texts, patterns };
}

/** As JSON writes a text within another one. */
const escapedOnce = (text: string): string => JSON.stringify(text).slice(1, -1);

/** What is the same in base64 wherever the text begins in what is encoded. */
function encodedForms(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const first = Math.ceil((before * 8) / 6);
    const inner = whole.slice(first, Math.floor(((before + bytes.length) * 8) / 6));
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

/** Every form in which a text may stand within another one. */
function formsOf(text: string): readonly string[] {
  const plain = [...new Set([text, text.trim(), ...text.split('\n').filter((line) => line.trim().length >= LEAST_PART)])];
  const escaped = plain.flatMap((one) => [escapedOnce(one), escapedOnce(escapedOnce(one)), escapedOnce(escapedOnce(escapedOnce(one)))]);
  const encoded = plain.flatMap((one) => [
    ...encodedForms(one),
    Buffer.from(one).toString('hex'),
    Buffer.from(one).toString('hex').toUpperCase(),
    encodeURIComponent(one.toWellFormed()),
  ]);
  return [...new Set([...plain, ...escaped, ...encoded.filter((form) => form.length >= LEAST_PART)])].filter((form) => form !== '');
}

/** Hides texts in all their forms, what matches patterns, and secrets of known forms. The same text is always masked alike. */
export class TextMask {
  readonly #patterns: readonly RE2JS[];
  /** The longest first, so that no part of one is left by another. */
  readonly #forms: readonly string[];
  readonly #known = new Map<string, string>();

  constructor({ texts, patterns }: MaskRules) {
    this.#patterns = patterns;
    this.#forms = [...new Set(texts.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  }

  /** A text without what is hidden. */
  readonly masked = (text: string): string => {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const made = this.#without(text);
    if (made !== text && text.length < 4_096) this.#known.set(text, made);
    return made;
  };

  #without(text: string): string {
    // What stands between the masks: a mask is no text to look into.
    let between: readonly string[] = [text];
    for (const form of this.#forms) if (text.includes(form)) between = between.flatMap((part) => part.split(form));
    for (const pattern of this.#patterns) between = between.flatMap((part) => pattern.split(part, -1));
    const joined = between.map((part, i) => this.#withoutEnds(part, { isLast: i === between.length - 1, isFirst: i === 0 })).join(MASK);
    return withoutSecrets(joined);
  }

  /** What was cut off in the middle of something hidden shows nothing of it. */
  #withoutEnds(text: string, { isFirst, isLast }: { readonly isFirst: boolean; readonly isLast: boolean }): string {
    let shown = text;
    for (const form of this.#forms) {
      if (form.length <= LEAST_PART) continue;
      if (isLast) {
        const at = shown.lastIndexOf(form.slice(0, LEAST_PART));
        if (at >= 0 && form.startsWith(shown.slice(at).replace(/…$/, ''))) shown = `${shown.slice(0, at)}${MASK}`;
      }
      if (isFirst) {
        const tail = form.slice(-LEAST_PART);
        const at = shown.indexOf(tail);
        if (at >= 0 && form.endsWith(shown.slice(0, at + LEAST_PART))) shown = `${MASK}${shown.slice(at + LEAST_PART)}`;
      }
    }
    return shown;
  }
}
