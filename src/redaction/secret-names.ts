/** Words of a name whose value is a secret, whatever the value looks like. */
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
/** The part of a name behind such a word: which one of several, and of what. */
const WHICH = String.raw`s?\d{0,4}(?:[_-][A-Za-z\d]{1,20}){0,3}`;
/**
 * A token alone may be one of a language model's: only with a word behind it that says which one,
 * so that counts of tokens stay.
 */
const TOKEN =
  String.raw`(?<![A-Za-z])token(?:[_-]?\d{1,4}|[_-](?:of|for|prod|production|live|dev|development|test|staging|old|new)` +
  String.raw`(?![A-Za-z\d])(?:[_-][A-Za-z\d]{1,20}){0,3})?`;

/**
 * The source of a pattern for a name whose value is a secret; in a text more may stand before it.
 * Matches without case.
 */
export const SECRET_NAME = String.raw`[\w.-]*(?:(?:${SECRET_WORD})${WHICH}|${TOKEN})`;

const WHOLE_NAME = new RegExp(`^${SECRET_NAME}$`, 'i');

/** Whether a name says that its value is a secret; its words may be apart. */
export function isSecretName(name: string): boolean {
  return WHOLE_NAME.test(name.replace(/[^\w.-]+/gu, '_').replace(/^_+|_+$/gu, ''));
}

/**
 * The source of a pattern for a flag of a command line whose value is a secret; names of files, and
 * flags that take no value, are none.
 */
export const SECRET_FLAG =
  String.raw`--?(?![\w.-]*(?:stdin|file|path|prompt|env|manager|hash|length|policy)(?![A-Za-z]))` + SECRET_NAME;

const WHOLE_FLAG = new RegExp(`^${SECRET_FLAG}$`, 'i');

/**
 * Whether the value behind an argument of a command line is a secret, such as behind `--password`.
 */
export function isSecretFlag(argument: string): boolean {
  return WHOLE_FLAG.test(argument);
}
