import { EdnError } from './errors.js';

/**
 * An EDN value in JavaScript.
 *
 * Vectors are arrays, `nil` is `null`, instants are `Date`s with milliseconds, integers are safe
 * integers. Keywords, symbols, lists, sets, maps and tagged values are only instances of the
 * classes below. A plain object from outside never counts as one of them.
 */
export type EdnValue =
  | null
  | boolean
  | number
  | string
  | Date
  | Keyword
  | EdnSymbol
  | EdnMap
  | EdnList
  | EdnSet
  | EdnTagged
  | EdnDouble
  | readonly EdnValue[];

const NAME_PART = '[A-Za-z_*!?$%&=<>+.-][\\w*!?$%&=<>+.-]*';
const NAME = new RegExp(`^(?:${NAME_PART}/)?${NAME_PART}$`);
const NUMBER_LIKE = /^[+.-]+\d/;
const RESERVED_SYMBOLS: ReadonlySet<string> = new Set(['nil', 'true', 'false']);

/**
 * Maximum length of the name of a keyword, symbol or tag, for reading and writing. Reading a token
 * costs the square of its length.
 */
export const MAX_NAME_LENGTH = 200;

function checkName(what: string, name: string): void {
  if (name.length > MAX_NAME_LENGTH || !NAME.test(name)) {
    throw new EdnError(
      'bad-name',
      `${JSON.stringify(name.slice(0, 40))} is not a name for a ${what}: use letters, digits and ` +
        '. _ - * ! ? $ % & = < > +, with at most one slash.',
    );
  }
}

/** A keyword such as `:xt/id`; `name` is written without the colon. */
export class Keyword {
  /** @throws {EdnError} `bad-name` if the name could be read as anything but one keyword */
  constructor(readonly name: string) {
    checkName('keyword', name);
    Object.freeze(this);
  }
}

/** A symbol such as `?e` or `pull`. */
export class EdnSymbol {
  /** @throws {EdnError} `bad-name` if the name could be read as anything but one symbol */
  constructor(readonly name: string) {
    checkName('symbol', name);
    if (RESERVED_SYMBOLS.has(name) || NUMBER_LIKE.test(name)) {
      throw new EdnError('bad-name', `${JSON.stringify(name)} would be read as a value, not as a symbol.`);
    }
    Object.freeze(this);
  }
}

/** A list `(a b c)`. */
export class EdnList {
  constructor(readonly items: readonly EdnValue[]) {}
}

/** A set `#{a b}`. Members are not compared; callers must pass distinct ones. */
export class EdnSet {
  constructor(readonly items: readonly EdnValue[]) {}
}

/** A map with keys of any kind in a fixed order. */
export class EdnMap {
  /**
   * @param flat alternating keys and values: `[k0, v0, k1, v1, …]`. Keys are not compared; callers
   *   must pass distinct ones.
   */
  constructor(readonly flat: readonly EdnValue[]) {}

  /** Returns the value of the keyword `:name`; `undefined` if there is none. */
  get(name: string): EdnValue | undefined {
    for (let i = 0; i < this.flat.length; i += 2) {
      const key = this.flat[i];
      if (key instanceof Keyword && key.name === name) return this.flat[i + 1];
    }
    return undefined;
  }

  get size(): number {
    return this.flat.length / 2;
  }
}

/** A tagged value `#tag value`. */
export class EdnTagged {
  /** @throws {EdnError} `bad-name` */
  constructor(
    readonly tag: string,
    readonly value: EdnValue,
  ) {
    checkName('tag', tag);
  }
}

/**
 * A whole number beyond the safe integers, which must be sent as a double. Only for writing;
 * reading gives a plain number.
 */
export class EdnDouble {
  /** @throws {EdnError} `bad-number` if it is not finite */
  constructor(readonly value: number) {
    if (!Number.isFinite(value)) throw new EdnError('bad-number', `${value} is not a finite number.`);
  }
}

/**
 * Returns the keyword `:name`.
 * @throws {EdnError} `bad-name`
 */
export const kw = (name: string): Keyword => new Keyword(name);

/**
 * Returns the symbol `name`.
 * @throws {EdnError} `bad-name`
 */
export const sym = (name: string): EdnSymbol => new EdnSymbol(name);

/** Returns the list of `items`. */
export const list = (...items: readonly EdnValue[]): EdnList => new EdnList(items);

/**
 * Returns a map with keyword keys, without `undefined` entries. The names are the caller's own
 * constants.
 */
export function kwMap(entries: Readonly<Record<string, EdnValue | undefined>>): EdnMap {
  const flat: EdnValue[] = [];
  for (const [name, value] of Object.entries(entries)) {
    if (value !== undefined) flat.push(kw(name), value);
  }
  return new EdnMap(flat);
}

/** Returns the elements of a vector, list or set; `undefined` for any other value. */
export function elements(value: EdnValue | undefined): readonly EdnValue[] | undefined {
  if (Array.isArray(value)) return value;
  return value instanceof EdnList || value instanceof EdnSet ? value.items : undefined;
}

/**
 * Maximum nesting of values, for reading and writing. XTDB's own stack overflows at about 5,000.
 */
export const MAX_DEPTH = 500;

/**
 * Rejects a string that UTF-8 cannot represent.
 * @throws {EdnError} `bad-string`
 */
export function checkString(value: string): string {
  if (!value.isWellFormed()) {
    throw new EdnError(
      'bad-string',
      'A string has a lone surrogate, which cannot be stored unchanged. ' +
        'Normalise it (toWellFormed) before hashing and storing.',
    );
  }
  return value;
}

/**
 * Rejects a number that is not finite, or a whole number that is not a safe integer. Minus zero
 * becomes zero.
 * @throws {EdnError} `bad-number`
 */
export function checkNumber(value: number): number {
  if (!Number.isFinite(value)) throw new EdnError('bad-number', `${value} is not a finite number.`);
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new EdnError('bad-number', `${value} lies beyond 2^53: send it as a string.`);
  }
  return Object.is(value, -0) ? 0 : value;
}

/**
 * Rejects an invalid Date.
 * @throws {EdnError} `not-a-value`
 */
export function checkDate(value: Date): Date {
  if (Number.isNaN(value.getTime())) throw new EdnError('not-a-value', 'An invalid Date has no instant.');
  return value;
}

/**
 * Rejects nesting beyond MAX_DEPTH.
 * @throws {EdnError} `too-deep`
 */
export function checkDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new EdnError('too-deep', `A value nests deeper than ${MAX_DEPTH} levels.`);
}
