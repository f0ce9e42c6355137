import { isLikelySecret, withoutNamedValues } from './secret-names.js';

/** Matches a format verb, such as `%v` or `{}`. */
const VERB = /^(?:%[+#]?[A-Za-z]|\{\d?\})[.,:;!]*$/;
const SHORT_WORD = /^[A-Za-z]{1,2}[.,:;!]*$/;

/**
 * Returns whether an export masks the value of a secret's name. Format verbs stay. So do unquoted
 * words of one or two letters, which occur in prose and at the end of a truncated text.
 */
export function isMaskedValue(value: string, isQuoted: boolean): boolean {
  return !VERB.test(value) && (isQuoted || !SHORT_WORD.test(value));
}

/** Minimum length of a value that is masked without its name. */
const LEAST = 6;
/** Matches one word with a letter. A reference, a path or a placeholder does not match. */
const ONE_WORD = /^(?=.*\p{L})[^\s"'`\\,;()[\]{}<>|$%*./~-][^\s"'`\\,;()[\]{}<>|]*$/u;
/** Matches addresses, and names of files, types and encodings. */
const COMMON = /:\/\/|\.[a-z]{1,4}$|^(?:u?int|float|base|sha|utf|aes|hmac)[-_]?\d+$/i;

/**
 * Returns whether a value is so distinct that its repetitions are secret too. This is a quoted word
 * with a hyphen or a digit, or a value that looks like a secret.
 */
function isDistinct(value: string, isQuoted: boolean): boolean {
  if (value.length < LEAST || !ONE_WORD.test(value) || COMMON.test(value)) return false;
  return (isQuoted && /[-\d]/.test(value)) || isLikelySecret(value, false);
}

/** Returns the distinct values of secrets' names in a text. */
export function distinctValues(text: string): readonly string[] {
  const found: string[] = [];
  withoutNamedValues(text, (value, isQuoted) => {
    const word = value.replace(/[.:!?]+$/, '');
    if (isDistinct(word, isQuoted)) found.push(word);
    return true;
  });
  return found;
}
