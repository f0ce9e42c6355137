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
  String.raw`(?<![A-Za-z])token(?:[_-]?\d{1,4}|[_-](?:of|for|prod|production|live|dev|development|test|staging|old|new)` +
  String.raw`(?![A-Za-z\d])(?:[_-][A-Za-z\d]{1,20}){0,3})?`;

/**
 * The source of a pattern for a name whose value is a secret. In a text, more characters may
 * precede it. Case-insensitive.
 */
export const SECRET_NAME = String.raw`[\w.-]*(?:(?:${SECRET_WORD})${WHICH}|${TOKEN})`;

const WHOLE_NAME = new RegExp(`^${SECRET_NAME}$`, 'i');

/** Returns whether a name's value is a secret. The words of the name may be separated. */
export function isSecretName(name: string): boolean {
  return WHOLE_NAME.test(name.replace(/[^\w.-]+/gu, '_').replace(/^_+|_+$/gu, ''));
}

/**
 * The source of a pattern for a command-line flag whose value is a secret. Excludes flags for file
 * names and flags without a value.
 */
export const SECRET_FLAG =
  String.raw`--?(?![\w.-]*(?:stdin|file|path|prompt|env|manager|hash|length|policy)(?![A-Za-z]))` + SECRET_NAME;

const WHOLE_FLAG = new RegExp(`^${SECRET_FLAG}$`, 'i');

/** Returns whether the value after a command-line argument is a secret, as after `--password`. */
export function isSecretFlag(argument: string): boolean {
  return WHOLE_FLAG.test(argument);
}
