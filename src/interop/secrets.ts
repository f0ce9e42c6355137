import type { Json } from '../objects/canonical-json.js';
import { mapTexts } from '../objects/map-texts.js';
import { MASK } from './masking.js';

/** Words of a name whose value is a secret, whatever it looks like. */
const SECRET_WORD =
  '(?:password|passwd|passphrase|secret[ _-]?key|secret|api[ _-]?key|access[ _-]?key|private[ _-]?key|credentials?|(?:auth|access|refresh|session)[ _-]?token)';
/** What a name says behind such a word: which one of several, and of what. */
const WHICH = String.raw`\d{0,4}(?:[_-][A-Za-z\d]{1,20}){0,3}`;
/** A token alone may be one of a language model's: only what says which one follows, so that counts of tokens stay. */
const TOKEN = String.raw`(?<![A-Za-z])token(?:[_-]?\d{1,4}|[_-](?:of|for|prod|production|live|dev|development|test|staging|old|new)(?![A-Za-z\d])(?:[_-][A-Za-z\d]{1,20}){0,3})?`;
/** A name whose value is a secret; in a text more may stand before it. */
const SECRET_NAME = String.raw`[\w.-]*(?:${SECRET_WORD}${WHICH}|${TOKEN})`;

/** Forms of secrets: with two groups what stands before and behind stays. Each takes time in the length of the text alone. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\bsk-[\w-]{16,}/g, MASK],
  [/\b(?:[sr]k_(?:live|test)|whsec)_\w{8,}/g, MASK],
  [/\bgh[a-z]_\w{16,}/g, MASK],
  [/\bgithub_pat_\w{16,}/g, MASK],
  [/\bglpat-[\w-]{16,}/g, MASK],
  [/\bxox[a-z]-[\w-]{8,}/g, MASK],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, MASK],
  [/\bAIza[\w-]{30,}/g, MASK],
  // Where words begin: otherwise one that never ends is looked through from each of its hyphens.
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, MASK],
  [/\bsecret:[\w./-]+/gi, MASK],
  [/\b(Bearer\s+)[\w.~+/=-]{8,}/gi, `$1${MASK}`],
  [/\b(Authorization\W{1,8}Basic\s+)[\w+/=-]{4,}/gi, `$1${MASK}`],
  // In an address up to its last `@`, whatever stands between; a port is no password, and what is behind the host is its path. Ends with the next address, which is looked through by itself.
  [/(:\/\/[^\s/:@[]{0,200}:)(?!\d{1,5}[/?#])(?:(?!:\/\/)[^\s"'<>@]){1,4096}(?:@(?:(?!:\/\/)[^\s"'<>@/?#]){0,256}){0,8}(@)/g, `$1${MASK}$2`],
];

/** What follows the word in a header; any word may, so that only a name with a password is taken for one. */
const BASIC = /\b(Basic\s{1,8})([\w+/-]{6,}={0,2})/gi;

const withoutBasic = (text: string): string =>
  text.replace(BASIC, (whole, word: string, said: string) =>
    /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(Buffer.from(said, 'base64').toString('latin1')) ? `${word}${MASK}` : whole,
  );

/** The name and the sign of `name=value` and `"name": "value"`. */
const ASSIGNED = new RegExp(String.raw`(?<![\w.-])${SECRET_NAME}\\*["']?\s{0,8}[:=]{1,3}>?\s{0,8}`, 'gi');
/** Texts in texts have backslashes before their quotes: 1, 3, 7 of them. */
const OPENING = /(\\*)(["'])/y;
const BARE = /(?:\[redacted\])?[^\s,;"'}\])]*/y;
/** Where a value goes on in the next lines, its end is not looked for any farther. */
const MOST_OVER_LINES = 4_096;

/** How many backslashes stand before a place, behind another one. */
function backslashes(text: string, from: number, before: number): number {
  let at = before;
  while (at > from && text[at - 1] === '\\') at--;
  return before - at;
}

/** Where a value between quotes ends, before its quote and the backslashes of that; undefined where nothing closes it. */
function closedAt(text: string, from: number, { depth, quote }: { readonly depth: number; readonly quote: string }): number | undefined {
  for (let at = text.indexOf(quote, from); at !== -1; at = text.indexOf(quote, at + 1)) {
    const run = backslashes(text, from, at);
    // Fewer are the end of the text that this one stands in; a backslash of the value itself stands for one more of each.
    if (run < depth || Math.floor((run - depth) / (depth + 1)) % 2 === 0) return at - Math.min(run, depth);
  }
  return undefined;
}

/** Where a value ends that begins behind a quote. One that its line does not close goes on to a quote that closes something, else to the end of the line. */
function quotedEnd(text: string, from: number, opening: { readonly depth: number; readonly quote: string }): number {
  const end = closedAt(text, from, opening);
  const line = text.slice(from, end).indexOf('\n');
  if (line === -1) return end ?? text.length;
  const lineEnd = from + line;
  // What is masked already, and was not closed.
  if (line === MASK.length && text.startsWith(MASK, from)) return lineEnd;
  if (end === undefined || end - from > MOST_OVER_LINES) return lineEnd;
  const behind = text[end + opening.depth + 1];
  return behind === undefined || /[\s,;:.)\]}>]/.test(behind) ? end : lineEnd;
}

/** The range of the value that begins at a place; an empty one for none. */
function valueAt(text: string, at: number): readonly [from: number, end: number] {
  OPENING.lastIndex = at;
  const [opening, slashes = '', quote = ''] = OPENING.exec(text) ?? [];
  if (opening !== undefined) {
    const from = at + opening.length;
    return [from, quotedEnd(text, from, { depth: slashes.length, quote })];
  }
  BARE.lastIndex = at;
  return [at, at + (BARE.exec(text)?.[0].length ?? 0)];
}

/** A text with the values masked that stand behind names of secrets. */
function withoutAssigned(text: string): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { 0: name, index } of text.matchAll(ASSIGNED)) {
    // Within a value that is masked.
    if (index < done) continue;
    const [from, end] = valueAt(text, index + name.length);
    if (end === from) continue;
    pieces.push(text.slice(done, from), MASK);
    done = end;
  }
  return pieces.join('') + text.slice(done);
}

/**
 * A text without secrets: keys of known forms, tokens behind `Bearer`, private keys, handles `secret:…`, passwords in addresses, and values behind names that say that they are secret; one whose quote is not
 * closed to the end of its line, so that a text that was cut off shows nothing of it. What is masked once stays as it is. Mask before you cut: of half a key nobody can tell what it was.
 */
export function withoutSecrets(text: string): string {
  return withoutAssigned(withoutBasic(FORMS.reduce((left, [form, replacement]) => left.replace(form, replacement), text)));
}

const WHOLE_NAME = new RegExp(`^[\\w.-]*(?:${SECRET_WORD}s?${WHICH}|${TOKEN})$`, 'i');

/** Whether a name says that what it holds is a secret; its words may be apart. */
function isSecretName(name: string): boolean {
  return WHOLE_NAME.test(name.replace(/[^\w.-]+/gu, '_').replace(/^_+|_+$/gu, ''));
}

/** A value of which every text and number is a secret. */
function hidden(value: Json): Json {
  if (typeof value === 'string' || typeof value === 'number') return MASK;
  if (Array.isArray(value)) return value.map(hidden);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, hidden(held)]));
}

/** A value without secrets, in any text of it, and under any name that says that what it holds is one. */
export function withoutSecretValues(value: Json): Json {
  const hide = (one: Json): Json => {
    if (Array.isArray(one)) return one.map(hide);
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, held]) => [key, isSecretName(key) ? hidden(held) : hide(held)]));
  };
  return mapTexts(hide(value), withoutSecrets);
}
