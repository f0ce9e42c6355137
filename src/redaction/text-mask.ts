import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import type { Json } from '../objects/canonical-json.js';
import { CodedError } from '../values/coded-error.js';
import { messageOf } from '../values/thrown.js';
import { MASK, piecesWithout, type ValueMask } from './mark.js';
import { withoutSecrets, withoutSecretValues } from './secrets.js';

/** Thrown if redaction rules cannot be used. */
export class MaskError extends CodedError<'malformed-rules'> {
  override readonly name = 'MaskError';
}

/** The content that a mask hides. */
export interface MaskRules {
  /** Texts that are hidden in every form in which they can be written. */
  readonly texts: readonly string[];
  /** Patterns of content to hide. */
  readonly patterns: readonly RE2JS[];
  /** Texts hidden only as separate words; very short ones only if they are the whole text. */
  readonly words?: readonly string[];
  /** Values of secrets' names, hidden only as separate words. */
  readonly values?: readonly string[];
}

/** Minimum length of a text in a rule. A shorter text would occur almost everywhere. */
export const LEAST_TEXT = 4;
/**
 * Minimum length of a form that is hidden anywhere in a text: a line, an encoded form, or a
 * remainder of a cut text.
 */
const LEAST_PART = 12;
/**
 * Minimum length of an encoded form that is hidden as a separate word. Shorter encoded forms are
 * not hidden.
 */
const LEAST_WORD_FORM = 6;

/**
 * Parses rules. Each line is a text to hide, or a pattern between slashes. Empty lines and lines
 * that begin with `#` are ignored.
 *
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
        throw new MaskError('malformed-rules', `line ${i + 1} of the rules is not a pattern: ${messageOf(cause)}`, {
          cause,
        });
      }
      if (pattern.matcher('').find())
        throw new MaskError('malformed-rules', `line ${i + 1} of the rules matches empty text: name a text to hide`);
      patterns.push(pattern);
    } else if (line.length < LEAST_TEXT)
      throw new MaskError(
        'malformed-rules',
        `line ${i + 1} of the rules is shorter than ${LEAST_TEXT} characters and would match everywhere`,
      );
    else texts.push(line);
  }
  return { texts, patterns };
}

/**
 * Matches where the rest of a text may have been cut off: at the end, an ellipsis or a line end.
 */
const CUT = String.raw`(?=\s*(?:$|…|\.\.\.|\n|\\n|["'\[]))`;
const CUT_HERE = new RegExp(`^${CUT}`);
/**
 * Matches what may precede a text whose beginning was cut off: the start, an ellipsis or a line
 * end.
 */
const LEFT_BEFORE = /(?:^|…|\.\.\.|\n|\\n|[\]"'])\s*$/;

/** Matches the beginnings of secrets of known forms whose end was cut off. */
const CUT_SECRETS = new RegExp(
  String.raw`(?<![\w-])(?:(?:sk|gh[a-z]_|github_pat_|glpat|xox[a-z]|[sr]k_(?:live|test)_|whsec_|AIza)-?(?<=[-_]|AIza)(?=[\w-]*[A-Z\d])[\w-]{6,}|(?:AKIA|ASIA)[A-Z0-9]{4,}|eyJ[\w-]{8,}(?:\.[\w-]*)?)${CUT}`,
  'g',
);

/** Matches the password in a URL that was cut off before the `@`. A port is not a password. */
const CUT_ADDRESS = new RegExp(
  String.raw`(:\/\/[^\s/:@[]{1,200}:)(?!\d{1,5}(?![^\s/?#]))[^\s"'<>@/?#…]{2,256}${CUT}`,
  'g',
);
/**
 * Signs that text was certainly cut off: `SURELY_CUT` follows text without its end, `SURELY_LEFT`
 * precedes text without its beginning. Beside such a sign, even a short remainder is hidden.
 */
const SURELY_CUT = /^(?:…|\.\.\.|\s*\[\.\.\.)/;
const SURELY_LEFT = /(?:…|\.\.\.|omitted \.\.\.\]\n)$/;

/**
 * Maximum UTF-16 units of masked texts in memory, and of one of them. An export repeats the parts
 * of a context for each call.
 */
const KEPT = { maxSize: 16 * 1_048_576, maxEntrySize: 262_144 };

/** Returns a text as JSON escapes it inside another text. */
const escapedOnce = (text: string): string => JSON.stringify(text).slice(1, -1);

/**
 * Returns the base64 of a text at each of the three offsets that it may have in longer data. Leaves
 * out the characters that also encode a neighbouring byte.
 */
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

/**
 * Returns the common digests of a text and of the text with a line end. A digest would confirm a
 * guess of the text.
 */
const digestsOf = (text: string): readonly string[] =>
  ['sha256', 'sha1', 'md5'].flatMap((name) => [text, `${text}\n`].map((one) => hash(name, one.toWellFormed(), 'hex')));

/**
 * Returns the encoded forms of a short text. They are hidden only as separate words, because longer
 * words may contain them by chance.
 */
function wordsOf(text: string): readonly string[] {
  if (text.length >= LEAST_PART) return [];
  const bytes = Buffer.from(text);
  const forms = [
    bytes.toString('base64'),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
  ];
  return forms.filter((form) => form.length < LEAST_PART && form.length >= LEAST_WORD_FORM);
}

/** Returns every form in which a text may occur in other texts. */
function formsOf(text: string): readonly string[] {
  const plain = [
    ...new Set([text, text.trim(), ...text.split('\n').filter((line) => line.trim().length >= LEAST_PART)]),
  ];
  const escaped = plain.flatMap((one) => [
    escapedOnce(one),
    escapedOnce(escapedOnce(one)),
    escapedOnce(escapedOnce(escapedOnce(one))),
  ]);
  const encoded = plain.flatMap((one) => [
    ...encodedForms(one),
    Buffer.from(one).toString('hex'),
    Buffer.from(one).toString('hex').toUpperCase(),
    encodeURIComponent(one.toWellFormed()),
  ]);
  return [
    ...new Set([...plain, ...escaped, ...digestsOf(text), ...encoded.filter((form) => form.length >= LEAST_PART)]),
  ].filter((form) => form !== '');
}

/**
 * Hides texts in all their forms, matches of patterns, and secrets of known forms. The same text
 * always gives the same result.
 */
export class TextMask implements ValueMask {
  readonly #patterns: readonly RE2JS[];
  /** Longest first, so that no shorter form leaves a part of a longer one. */
  readonly #forms: readonly string[];
  readonly #known = new LRUCache<string, string>({
    ...KEPT,
    sizeCalculation: (made, { length }) => made.length + length + 64,
  });
  readonly #words: RegExp | undefined;
  readonly #whole: ReadonlySet<string>;

  constructor({ texts, patterns, words = [], values = [] }: MaskRules) {
    this.#patterns = patterns;
    this.#whole = new Set(words);
    const alone = [
      ...texts.flatMap(wordsOf),
      ...[...words, ...values].filter((word) => word.length >= LEAST_TEXT).flatMap((word) => [word, ...wordsOf(word)]),
    ];
    const any = [...new Set(alone)]
      .sort((a, b) => b.length - a.length)
      .map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
    if (any.length > 0) this.#words = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${any.join('|')})(?![\\p{L}\\p{N}_])`, 'gu');
    this.#forms = [...new Set([...texts.flatMap(formsOf), ...words.flatMap(digestsOf)])].sort(
      (a, b) => b.length - a.length,
    );
  }

  /** Returns a text without its hidden parts. */
  readonly masked = (text: string): string => {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const made = this.#without(text);
    this.#known.set(text, made);
    return made;
  };

  /**
   * Returns a value without its hidden parts, which may be in texts, names and numbers. If hidden
   * content spans several fields, masks all of these fields.
   */
  readonly maskedValue = (value: Json): Json => {
    return this.#maskedValue(withoutSecretValues(value));
  };

  #maskedValue(value: Json): Json {
    if (typeof value === 'string') return this.masked(value);
    if (typeof value === 'number') {
      const text = String(value);
      return this.masked(text) === text ? value : MASK;
    }
    if (typeof value !== 'object' || value === null) return value;
    const made: Json = Array.isArray(value)
      ? value.map((one) => this.#maskedValue(one))
      : Object.fromEntries(
          Object.entries(value).map(([name, one]) => [this.masked(name), this.#entry(name, this.#maskedValue(one))]),
        );
    // Searches the value's JSON as a whole, unless it has escapes: an escaped line end would not
    // end a pattern's match.
    const json = JSON.stringify(made);
    if (json.includes('\\') || this.masked(json) === json) return made;
    return Array.isArray(made) ? [MASK] : { [MASK]: MASK };
  }

  /** Masks a field's value if name and value together contain hidden content. */
  #entry(name: string, held: Json): Json {
    const first = typeof held === 'string' ? (/^[^\n"\\]*/.exec(held)?.[0] ?? '') : held;
    return [`${JSON.stringify(name)}:`, `${JSON.stringify(name)}: `].some((before) => {
      const text = `${before}${JSON.stringify(first)}`;
      return !text.includes('\\') && this.masked(text) !== text && this.masked(before) === before;
    })
      ? MASK
      : held;
  }

  #without(text: string): string {
    if (this.#whole.has(text) || this.#whole.has(text.trim())) return MASK;
    let between = piecesWithout(text, this.#forms);
    if (this.#words !== undefined) between = between.flatMap((part) => part.split(this.#words as RegExp));
    for (const pattern of this.#patterns) between = between.flatMap((part) => pattern.split(part, -1));
    const joined = between.map((part) => this.#withoutEnds(part)).join(MASK);
    return withoutSecrets(joined).replace(CUT_SECRETS, MASK).replace(CUT_ADDRESS, `$1${MASK}`);
  }

  /** Removes what is left of hidden content whose beginning or end was cut off. */
  #withoutEnds(text: string): string {
    let shown = text;
    for (const form of this.#forms) {
      const least = Math.min(LEAST_PART, Math.max(LEAST_TEXT, Math.ceil(form.length / 2)));
      if (form.length <= least) continue;
      const head = form.slice(0, least);
      for (let [at, next] = [shown.indexOf(head), 0]; at !== -1; at = shown.indexOf(head, next)) {
        next = at + 1;
        let end = at + least;
        while (end < shown.length && shown[end] === form[end - at]) end += 1;
        const isCut = end - at < LEAST_PART ? SURELY_CUT : CUT_HERE;
        if (!isCut.test(shown.slice(end, end + 80))) continue;
        shown = `${shown.slice(0, at)}${MASK}${shown.slice(end).replace(/^…$/, '')}`;
        // Continues behind the mask. A form may begin like the mask, and a search inside it would
        // never end.
        next = at + MASK.length;
      }
      const tail = form.slice(-least);
      for (let [at, next] = [shown.indexOf(tail), 0]; at !== -1; at = shown.indexOf(tail, next)) {
        next = at + 1;
        const end = at + least;
        let from = at;
        while (from > 0 && shown[from - 1] === form[form.length - (end - from) - 1]) from -= 1;
        const isLeft = end - from < LEAST_PART ? SURELY_LEFT : LEFT_BEFORE;
        if (!isLeft.test(shown.slice(Math.max(0, from - 80), from))) continue;
        shown = `${shown.slice(0, from)}${MASK}${shown.slice(end)}`;
        next = from + MASK.length;
      }
    }
    return shown;
  }
}
