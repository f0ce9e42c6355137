import { MASK } from './mark.js';
import { valueRange } from './value-range.js';

/** A name that contains one of these words has a secret as its value. */
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
/**
 * The possible rest of a name after a secret word, such as a number that distinguishes several
 * secrets.
 */
const WHICH = String.raw`s?\d{0,4}(?:[_-][A-Za-z\d]{1,20}){0,3}`;
/**
 * A name with `token` may also count a language model's tokens. `token` marks a secret only at the
 * end of a name, or before one of these words or a number.
 */
const TOKEN =
  String.raw`(?<![A-Za-z])token(?:[_-]?\d{1,4}|` +
  '[_-](?:of|for|prod|production|live|dev|development|test|staging|old|new)' +
  String.raw`(?![A-Za-z\d])(?:[_-][A-Za-z\d]{1,20}){0,3})?`;

/**
 * A pattern for a name whose value is a secret. Use it case-insensitively. A name may begin with
 * any other word characters.
 */
const SECRET_NAME = String.raw`[\w.-]*(?:(?:${SECRET_WORD})${WHICH}|${TOKEN})`;

const WHOLE_NAME = new RegExp(`^${SECRET_NAME}$`, 'i');

/**
 * Returns whether a name's value is a secret. Any characters may separate the words of the name.
 */
export function isSecretName(name: string): boolean {
  return WHOLE_NAME.test(name.replace(/[^\w.-]+/gu, '_').replace(/^_+|_+$/gu, ''));
}

/**
 * A pattern for a command-line flag whose value is a secret. Excludes flags that take a file name
 * or no value.
 */
const SECRET_FLAG =
  String.raw`--?(?![\w.-]*(?:stdin|file|path|prompt|env|manager|hash|length|policy)(?![A-Za-z]))` + SECRET_NAME;

const WHOLE_FLAG = new RegExp(`^${SECRET_FLAG}$`, 'i');

/** Returns whether the value after a command-line argument is a secret, as after `--password`. */
export function isSecretFlag(argument: string): boolean {
  return WHOLE_FLAG.test(argument);
}

/** Matches a secret's name and the sign after it (`=`, `:`), directly before the value. */
const ASSIGNED = String.raw`(?<![\w.-])${SECRET_NAME}\\*["']?\s{0,8}(?:[:=]{1,3}>?)`;
/** Matches `"name": "PASSWORD", "value": "…"`, as in lists of settings, also in YAML and XML. */
const PAIRED =
  String.raw`(?<![\w.-])(?:name|key|variable)\\*["']?\s{0,8}[:=]\s{0,8}\\*["']?${SECRET_NAME}\\*["']?` +
  String.raw`(?:[\s,;]|\\[nrt]){1,64}\\*["']?(?:value|val)\\*["']?\s{0,8}[:=]`;
/** Matches `--password …` in a command line, and `"--password", "…"` in its list form. */
const FLAG = String.raw`(?<![\w-])${SECRET_FLAG}(?:\s{1,8}(?!-)|\\*["']\s{0,8},\s{0,8}(?=\\*["']))`;
/** Matches `ENV PASSWORD …` in a Dockerfile. */
const RECIPE = String.raw`(?:^|\n|\\n)\s{0,8}(?:ENV|setenv)\s{1,8}${SECRET_NAME}\s{1,8}`;
/** Matches the opening tag of `<password>…</password>`. */
const ELEMENT = String.raw`<${SECRET_NAME}(?:\s[^<>]{0,200})?>(?=[^<]{1,4096}</)`;

const LEADS = new RegExp([PAIRED, ELEMENT, FLAG, RECIPE, ASSIGNED].map((lead) => `(?:${lead})`).join('|'), 'gi');

/**
 * Matches a Kubernetes object of kind Secret. All its data is secret, even if the names of the
 * fields are not secrets' names.
 */
const SECRET_KIND = /(?:^|\n|\\n)kind:[^\S\n]{0,8}Secret(?![\w.-])/;
const SECRET_DATA = /(?<=^|\n|\\n)(?:data|stringData):/g;

/**
 * Patterns of code that only refers to a value: `$API_TOKEN`, `config.apiKey`,
 * `values["password"]`.
 */
const REFERENCES: readonly RegExp[] = [
  /\$(?:\{(?=\w+\}))?([A-Z][A-Z0-9]*_[A-Z0-9_]*)\}?(?![^\s"',;)\]}])/y,
  /[A-Za-z_]\w{0,60}(?:\??\.[A-Za-z_]\w{0,60}){0,8}\??\.([A-Za-z_]\w{0,60})(?![^\s,;)\]}])/y,
  /[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){0,8}\[\\{0,7}["']([\w.-]{1,60})\\{0,7}["']\](?![^\s,;)\]}])/y,
];

const VARIABLE = /[A-Za-z_]\w{0,60}(?=[,;)}\]])/y;

/**
 * Returns whether a value is only a reference to a secret. The last name in the reference must be a
 * secret's name, so that a password with a dot stays masked. A plain variable must have the same
 * name as the field.
 */
function isReference(text: string, at: number, lead: string): boolean {
  VARIABLE.lastIndex = at;
  const variable = VARIABLE.exec(text)?.[0].toLowerCase();
  if (variable !== undefined && variable === /(\w+)\W*$/.exec(lead)?.[1]?.toLowerCase()) return true;
  return REFERENCES.some((form) => {
    form.lastIndex = at;
    const name = form.exec(text)?.[1];
    return name !== undefined && isSecretName(name);
  });
}

/** Matches a stand-in for a secret in a help text or an example: `...`, `<TOKEN>`, `XXXX`. */
const STAND_IN =
  /(?:\.{2,}|…|\*{2,}|x{3,}|X{3,}|<[A-Za-z][A-Za-z _-]{0,40}>|[A-Z]{2,}(?:_[A-Z]+){0,4})(?![^\s"'`,;:.)\]}|<\\]|\.\S)/y;

/** Returns whether a value is a stand-in. A word in capitals must be a secret's name. */
function isStandIn(text: string, { from, end }: { readonly from: number; readonly end: number }): boolean {
  STAND_IN.lastIndex = from;
  const found = STAND_IN.exec(text)?.[0];
  if (found === undefined || (/^[A-Z]/.test(found) && !/^X+$/.test(found) && !isSecretName(found))) return false;
  return found.length >= text.slice(from, end).replace(/[`.,;:]+$/, '').length;
}

/** Decides whether a found value is masked. `isQuoted`: quotes or tags surround the value. */
type AcceptsValue = (value: string, isQuoted: boolean) => boolean;

/** Masks the values that follow matches of `leads`. */
function withoutValues(text: string, leads: RegExp, accepts: AcceptsValue): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { 0: lead, index } of text.matchAll(leads)) {
    // Skips a match inside a value that is already masked.
    if (index < done) continue;
    const at = index + lead.length;
    if (lead.startsWith('<')) {
      const end = text.indexOf('<', at);
      if (isStandIn(text, { from: at, end }) || !accepts(text.slice(at, end), true)) continue;
      pieces.push(text.slice(done, at), MASK);
      done = end;
      continue;
    }
    const range = valueRange(text, at, { from: index, text: lead, isColon: lead.endsWith(':') });
    if (range === undefined || isStandIn(text, range) || isReference(text, range.from, lead)) continue;
    if (!accepts(text.slice(range.from, range.end), /["']/.test(text[range.from - 1] ?? ''))) continue;
    pieces.push(text.slice(done, range.from), range.shown);
    done = range.end;
  }
  return pieces.join('') + text.slice(done);
}

/**
 * Masks the values of secrets' names in a text, if `accepts` agrees. Masks whole lists, objects and
 * YAML blocks.
 */
export function withoutNamedValues(text: string, accepts: AcceptsValue = () => true): string {
  const left = withoutValues(text, LEADS, accepts);
  return SECRET_KIND.test(left) ? withoutValues(left, SECRET_DATA, accepts) : left;
}

/** Matches values that only stand for a secret, such as `changeme`. */
const PLACEHOLDER = new RegExp(
  `^(?:${[
    /x{3,}|[*.•]{3,}|<.*>|\$.*|%.*%|\{.*|\[.*/,
    /(?:your|my|the|some|example|sample|change|replace|dummy|placeholder|insert|enter|todo)(?![a-z0-9]*\d{3}).*/,
    /redacted|null|none|nil|undefined|true|false|string|number|boolean|unknown|any|required|optional/,
  ]
    .map(({ source }) => source)
    .join('|')})$`,
  'i',
);
/** Matches expressions, members, names and paths in code. */
const CODE = /[()<>|]|=>|^[A-Za-z_$][\w$]*(?:[.:]+[A-Za-z_$][\w$]*)+[;,]?$|^\/|^\.{1,2}\//;
const LEAST = 6;
/** Minimum length of a secret without digits. Its characters must also vary enough. */
const LEAST_VARIED = 20;
const BITS = 3.5;

/** Returns the Shannon entropy of a text, in bits per character. */
function entropy(text: string): number {
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}

/** Matches names in code that end in a number, such as `line_12`. */
const NUMBERED_WORD = /^(?:[a-z]+[_-])*[a-z]+[_-]\d{1,2}$/i;

function isLikelyLine(value: string): boolean {
  const text = value.trim().replace(/^(?:- )?["'`]?|["'`;,\\]+$/g, '');
  if (text.length < LEAST || PLACEHOLDER.test(text) || CODE.test(text) || /\s/.test(text)) return false;
  const hasLetter = /\p{L}/u.test(text);
  if (/\d/.test(text) && hasLetter) return !NUMBERED_WORD.test(text);
  if (hasLetter && /[^\p{L}\d_.\-/]/u.test(text)) return true;
  return text.length >= LEAST_VARIED && entropy(text) >= BITS && !/^[A-Za-z]+(?:[_-]?[A-Za-z]+)*$/.test(text);
}

/**
 * Returns whether the value of a secret's name looks like a secret. Placeholders, code and plain
 * words do not. With `isStrict`, everything except placeholders does.
 */
export function isLikelySecret(value: string, isStrict: boolean): boolean {
  if (isStrict) return value.trim().length > 1 && !PLACEHOLDER.test(value.trim());
  // A text inside JSON has escapes in place of line breaks.
  return value.split(/\n|\\+[nrt]/).some(isLikelyLine);
}
