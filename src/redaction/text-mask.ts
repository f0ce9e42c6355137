import { hash } from 'node:crypto';
import { RE2JS } from 're2js';
import type { Json } from '../objects/canonical-json.js';
import { CodedError } from '../values/coded-error.js';
import { messageOf } from '../values/thrown.js';
import { MASK, piecesWithout, type ValueMask } from './mark.js';
import { withoutSecrets, withoutSecretValues } from './secrets.js';

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
  /** Texts that are hidden where one is all of a text, or stands in it by itself. */
  readonly words?: readonly string[];
}

/** The shortest text of a rule: shorter ones would be found in everything. */
export const LEAST_TEXT = 4;
/** A line of a longer text, the beginning of one at the end of what was cut off, and an encoded form are hidden by themselves from this length on. */
const LEAST_PART = 12;
/** A shorter one is hidden as a word from this length on; an even shorter one only where it is all of a text. */
const LEAST_WORD_FORM = 6;

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

/** Where a text that was cut off ends: at the end, before what says so, or before the line that does. */
const CUT = String.raw`(?=\s*(?:$|…|\.\.\.|\n|\\n|["'\[]))`;
const CUT_HERE = new RegExp(`^${CUT}`);
/** Where what is left behind a cut begins. */
const LEFT_BEFORE = /(?:^|…|\.\.\.|\n|\\n|[\]"'])\s*$/;

/** Beginnings of secrets of known forms of which the end was cut off. */
const CUT_SECRETS = new RegExp(
  String.raw`(?<![\w-])(?:(?:sk|gh[a-z]_|github_pat_|glpat|xox[a-z]|[sr]k_(?:live|test)_|whsec_|AIza)-?(?<=[-_]|AIza)(?=[\w-]*[A-Z\d])[\w-]{6,}|(?:AKIA|ASIA)[A-Z0-9]{4,}|eyJ[\w-]{8,}(?:\.[\w-]*)?)${CUT}`,
  'g',
);

/** The password of an address that was cut off before the `@` behind it; a port is none. */
const CUT_ADDRESS = new RegExp(String.raw`(:\/\/[^\s/:@[]{1,200}:)(?!\d{1,5}(?![^\s/?#]))[^\s"'<>@/?#…]{2,256}${CUT}`, 'g');
/** Where something was cut off for certain: less of it is hidden there than at the end of any line. */
const SURELY_CUT = /^(?:…|\.\.\.|\s*\[\.\.\.)/;
const SURELY_LEFT = /(?:…|\.\.\.|omitted \.\.\.\]\n)$/;

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

/** Hashes by which whoever guesses a text could tell: of it, and of it as a line. */
const digestsOf = (text: string): readonly string[] =>
  ['sha256', 'sha1', 'md5'].flatMap((name) => [text, `${text}\n`].map((one) => hash(name, one.toWellFormed(), 'hex')));

/** What is too short to be looked for inside of words, and hidden where nothing stands around it. */
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
  return [...new Set([...plain, ...escaped, ...digestsOf(text), ...encoded.filter((form) => form.length >= LEAST_PART)])].filter(
    (form) => form !== '',
  );
}

/** Hides texts in all their forms, what matches patterns, and secrets of known forms. The same text is always masked alike. */
export class TextMask implements ValueMask {
  readonly #patterns: readonly RE2JS[];
  /** The longest first, so that no part of one is left by another. */
  readonly #forms: readonly string[];
  readonly #known = new Map<string, string>();
  readonly #words: RegExp | undefined;
  readonly #whole: ReadonlySet<string>;

  constructor({ texts, patterns, words = [] }: MaskRules) {
    this.#patterns = patterns;
    this.#whole = new Set(words);
    const alone = [
      ...texts.flatMap(wordsOf),
      ...words.filter((word) => word.length >= LEAST_TEXT).flatMap((word) => [word, ...wordsOf(word)]),
    ];
    const any = [...new Set(alone)].sort((a, b) => b.length - a.length).map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
    if (any.length > 0) this.#words = new RegExp(`(?<![\\p{L}\\p{N}_])(?:${any.join('|')})(?![\\p{L}\\p{N}_])`, 'gu');
    this.#forms = [...new Set([...texts.flatMap(formsOf), ...words.flatMap(digestsOf)])].sort((a, b) => b.length - a.length);
  }

  /** A text without what is hidden. */
  readonly masked = (text: string): string => {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const made = this.#without(text);
    if (made !== text && text.length < 4_096) this.#known.set(text, made);
    return made;
  };

  /** A value without what is hidden: by the names in it, as in the text that it is written as, and in its numbers too. Where something is hidden across several fields, nothing of these is left. */
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
      : Object.fromEntries(Object.entries(value).map(([name, one]) => [this.masked(name), this.#entry(name, this.#maskedValue(one))]));
    // What is escaped in JSON is looked for by itself alone: there its lines do not end any more.
    const json = JSON.stringify(made);
    if (json.includes('\\') || this.masked(json) === json) return made;
    return Array.isArray(made) ? [MASK] : { [MASK]: MASK };
  }

  /** What a field holds, as the text of both shows it. */
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

  /** What was cut off in the middle of something hidden shows nothing of it, wherever the cut is. */
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
        // A form may begin as the mask goes on: looked for in there, it would be masked for ever.
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
