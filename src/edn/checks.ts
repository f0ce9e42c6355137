import { EdnError } from './errors.js';

/** How deep values may nest, both ways. Far below where XTDB's own stack ends (about 5,000). */
export const MAX_DEPTH = 500;

/** Refuses a string that UTF-8 cannot carry unchanged. @throws {EdnError} `bad-string` */
export const checkString = (value: string): string => {
  if (!value.isWellFormed()) {
    throw new EdnError(
      'bad-string',
      'A string holds a lone surrogate, which cannot be stored unchanged: normalise it (toWellFormed) before hashing and storing.',
    );
  }
  return value;
};

/** Refuses a number that is not finite, or a whole number that is no safe integer. Minus zero becomes zero. @throws {EdnError} `bad-number` */
export const checkNumber = (value: number): number => {
  if (!Number.isFinite(value)) throw new EdnError('bad-number', `${value} is not a finite number.`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new EdnError('bad-number', `${value} lies beyond 2^53: send it as a string.`);
  }
  return Object.is(value, -0) ? 0 : value;
};

/** Refuses an invalid Date. @throws {EdnError} `not-a-value` */
export const checkDate = (value: Date): Date => {
  if (Number.isNaN(value.getTime())) throw new EdnError('not-a-value', 'An invalid Date has no instant.');
  return value;
};

/** Refuses nesting beyond MAX_DEPTH. @throws {EdnError} `too-deep` */
export const checkDepth = (depth: number): void => {
  if (depth > MAX_DEPTH) throw new EdnError('too-deep', `A value nests deeper than ${MAX_DEPTH} levels.`);
};
