import { MASK } from './mark.js';
import { valueRange } from './value-range.js';

/** Words that make a name's value a secret. */
const SECRET_WORD = [
  'password',
  'passwd',
  'passphrase',
  'passcode',
  'secret[ _-]?key',
  'secret',
  'api[ _-]?key',
  '(?:access|account|encryption|master|private|service[ _-]?role|shared[ _-]?access|signing|storage)[ _-]?key',
  'client[ _-]?key[ _-]?data',
  'shared[ _-]?access[ _-]?signature',
  'credential',
  '(?:access|api|app|auth|bearer|bot|deploy|id|oauth|refresh|session)[ _-]?token',
  '(?<=[_-])(?:pass|pwd)(?![A-Za-z])',
].join('|');
/** The part of a name after such a word, which distinguishes several secrets. */
const WHICH = String.raw`s?\d{0,4}(?:[_-][A-Za-z\d]{1,20}){0,3}`;
/**
 * A bare `token` may be a language model's. It requires a word after it, so that token counts stay.
 */
const TOKEN =
  String.raw`(?<![A-Za-z])token(?:[_-]?\d{1,4}|` +
  '[_-](?:of|for|prod|production|live|dev|development|test|staging|old|new)' +
  String.raw`(?![A-Za-z\d])(?:[_-][A-Za-z\d]{1,20}){0,3})?`;

/**
 * The source of a pattern for a name whose value is a secret. In a text, more characters may
 * precede it. Case-insensitive.
 */
const SECRET_NAME = String.raw`[\w.-]*(?:(?:${SECRET_WORD})${WHICH}|${TOKEN})`;

const WHOLE_NAME = new RegExp(`^${SECRET_NAME}$`, 'i');

/** Returns whether a name's value is a secret. The words of the name may be separated. */
export function isSecretName(name: string): boolean {
  return WHOLE_NAME.test(name.replace(/[^\w.-]+/gu, '_').replace(/^_+|_+$/gu, ''));
}

/**
 * The source of a pattern for a command-line flag whose value is a secret. Excludes flags for file
 * names and flags without a value.
 */
const SECRET_FLAG =
  String.raw`--?(?![\w.-]*(?:stdin|file|path|prompt|env|manager|hash|length|policy)(?![A-Za-z]))` + SECRET_NAME;

const WHOLE_FLAG = new RegExp(`^${SECRET_FLAG}$`, 'i');

/** Returns whether the value after a command-line argument is a secret, as after `--password`. */
export function isSecretFlag(argument: string): boolean {
  return WHOLE_FLAG.test(argument);
}

/** Matches the text directly before a value. The group `name` begins at the name. */
const ASSIGNED = String.raw`(?<![\w.-])${SECRET_NAME}\\*["']?\s{0,8}(?:[:=]{1,3}>?)`;
/**
 * `"name": "PASSWORD", "value": "…"`, as in lists of settings and variables, also in YAML and XML.
 */
const PAIRED =
  String.raw`(?<![\w.-])(?:name|key|variable)\\*["']?\s{0,8}[:=]\s{0,8}\\*["']?${SECRET_NAME}\\*["']?` +
  String.raw`(?:[\s,;]|\\[nrt]){1,64}\\*["']?(?:value|val)\\*["']?\s{0,8}[:=]`;
/** `--password …` of a command line, and `"--password", "…"` of its list form. */
const FLAG = String.raw`(?<![\w-])${SECRET_FLAG}(?:\s{1,8}(?!-)|\\*["']\s{0,8},\s{0,8}(?=\\*["']))`;
/** `ENV PASSWORD …` of an image's build file. */
const RECIPE = String.raw`(?:^|\n|\\n)\s{0,8}(?:ENV|setenv)\s{1,8}${SECRET_NAME}\s{1,8}`;
/** `<password>…</password>` */
const ELEMENT = String.raw`<${SECRET_NAME}(?:\s[^<>]{0,200})?>(?=[^<]{1,4096}</)`;

const LEADS = new RegExp([PAIRED, ELEMENT, FLAG, RECIPE, ASSIGNED].map((lead) => `(?:${lead})`).join('|'), 'gi');

/**
 * A Kubernetes object of kind Secret. Its fields are secrets by the object's kind, not by their
 * names.
 */
const SECRET_KIND = /(?:^|\n|\\n)kind:[^\S\n]{0,8}Secret(?![\w.-])/;
const SECRET_DATA = /(?<=^|\n|\\n)(?:data|stringData):/g;

/** Masks the values that follow matches of `leads`. */
function withoutValues(text: string, leads: RegExp): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { 0: lead, index } of text.matchAll(leads)) {
    // The match is within a value that is already masked.
    if (index < done) continue;
    const at = index + lead.length;
    if (lead.startsWith('<')) {
      const end = text.indexOf('<', at);
      pieces.push(text.slice(done, at), MASK);
      done = end;
      continue;
    }
    const range = valueRange(text, at, { from: index, text: lead, isColon: lead.endsWith(':') });
    if (range === undefined) continue;
    pieces.push(text.slice(done, range.from), range.shown);
    done = range.end;
  }
  return pieces.join('') + text.slice(done);
}

/**
 * Masks the values of secret names in a text. Lists, objects and YAML blocks are masked as a whole.
 */
export function withoutNamedValues(text: string): string {
  const left = withoutValues(text, LEADS);
  return SECRET_KIND.test(left) ? withoutValues(left, SECRET_DATA) : left;
}
