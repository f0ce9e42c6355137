import type { Json } from '../objects/canonical-json.js';
import { MASK, mapTexts } from './masking.js';

/** A name whose value is a secret, whatever it looks like. */
const SECRET_NAME = String.raw`[\w.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|auth[_-]?token|access[_-]?token|refresh[_-]?token|session[_-]?token|(?<![A-Za-z])token)`;

/** Forms of secrets: with two groups what stands before and behind stays. Each takes time in the length of the text alone. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MASK],
  [/\bsk-[\w-]{16,}/g, MASK],
  [/\bgh[a-z]_\w{16,}/g, MASK],
  [/\bgithub_pat_\w{16,}/g, MASK],
  [/\bglpat-[\w-]{16,}/g, MASK],
  [/\bxox[a-z]-[\w-]{8,}/g, MASK],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, MASK],
  [/\bAIza[\w-]{30,}/g, MASK],
  // Where words begin: otherwise one that never ends is looked through from each of its hyphens.
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, MASK],
  [/\bsecret:[\w./-]+/gi, MASK],
  [/\b(Bearer\s+)[\w.~+/-]{8,}=*/gi, `$1${MASK}`],
  [/\b(Authorization\W{1,8}Basic\s+)[\w+/-]{4,}=*/gi, `$1${MASK}`],
  [/(:\/\/[^\s/:@]{0,200}:)[^\s/@]{1,200}(@)/g, `$1${MASK}$2`],
];

/** `name=value` and `"name": "value"`; a value that stands between quotes ends with them. */
const ASSIGNED = new RegExp(
  String.raw`(?<![\w.-])(${SECRET_NAME}\\?["']?\s{0,8}[:=]\s{0,8})(\[redacted\]|\\"[^"\\\n]*\\"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[^\s,;"'}\])]+)`,
  'gi',
);
const IS_SECRET_NAME = new RegExp(`^${SECRET_NAME}$`, 'i');

function masked(value: string): string {
  const quote = /^\\?["']/.exec(value)?.[0] ?? '';
  return `${quote}${MASK}${quote}`;
}

/**
 * A text without secrets: keys of known forms, tokens behind `Bearer`, private keys, handles `secret:…`, passwords in addresses, and values behind names that say that they are secret. What is masked
 * once stays as it is.
 */
export function withoutSecrets(text: string): string {
  const known = FORMS.reduce((left, [form, replacement]) => left.replace(form, replacement), text);
  return known.replace(ASSIGNED, (_all, name: string, value: string) => `${name}${masked(value)}`);
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
    return Object.fromEntries(Object.entries(one).map(([key, held]) => [key, IS_SECRET_NAME.test(key) ? hidden(held) : hide(held)]));
  };
  return mapTexts(hide(value), withoutSecrets);
}
