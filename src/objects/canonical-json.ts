import stringify from 'json-stable-stringify';
import { DocumentError, quoted } from './errors.js';

/** Plain JSON data: the input of a hash, and the form of a nested value in the database. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Maximum nesting depth of plain data. */
export const DEEPEST = 200;

function check(value: unknown, path: string, depth: number): void {
  if (depth > DEEPEST)
    throw new DocumentError(
      'invalid-value',
      `the value at ${path.slice(0, 80)} is nested deeper than ${DEEPEST} levels`,
    );
  if (value === null || typeof value === 'boolean') return;
  if (typeof value === 'string') {
    if (!value.isWellFormed())
      throw new DocumentError(
        'lone-surrogate',
        `the text at ${path} contains a lone surrogate and cannot be stored exactly`,
      );
    return;
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value))
      throw new DocumentError('not-finite', `the number at ${path} is ${value}; only finite numbers can be hashed`);
    return;
  }
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) check(value[i], `${path}[${i}]`, depth + 1);
    return;
  }
  if (typeof value === 'object') {
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) {
      throw new DocumentError(
        'invalid-value',
        `the value at ${path} is a ${prototype?.constructor?.name ?? 'foreign object'}, not plain data`,
      );
    }
    for (const [key, member] of Object.entries(value)) {
      if (!key.isWellFormed())
        throw new DocumentError('lone-surrogate', `the key ${quoted(key)} at ${path} contains a lone surrogate`);
      check(member, `${path}.${key}`, depth + 1);
    }
    return;
  }
  throw new DocumentError('invalid-value', `the value at ${path} is ${typeof value}, which JSON cannot hold`);
}

/**
 * Returns whether `check` would accept a value. Unlike `check`, builds no paths, which only an
 * error needs.
 */
function isPlain(value: unknown, depth: number): boolean {
  if (depth > DEEPEST) return false;
  if (value === null || typeof value === 'boolean') return true;
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object') return false;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlain(value[i], depth + 1)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const key of Object.keys(value)) {
    if (!key.isWellFormed() || !isPlain((value as Readonly<Record<string, unknown>>)[key], depth + 1)) return false;
  }
  return true;
}

/**
 * Rejects values that canonical JSON cannot represent: non-finite numbers, lone surrogates,
 * undefined, and anything that is not plain data.
 */
export function assertPlainJson(value: unknown, name = 'value'): asserts value is Json {
  if (!isPlain(value, 0)) check(value, name, 0);
}

/**
 * Returns canonical JSON (decision A1): keys sorted at every depth by UTF-16 code units, no
 * whitespace. json-stable-stringify defines the bytes.
 *
 * @throws {DocumentError} if `assertPlainJson` rejects the value
 *
 * @example
 * ```ts
 * canonicalJson({ b: 1, a: [true] }); // {"a":[true],"b":1}
 * ```
 */
export function canonicalJson(value: unknown): string {
  assertPlainJson(value);
  return stringify(value) as string;
}

/** An object or list that is being written, with the members written so far. */
interface OpenMembers {
  readonly of: object;
  readonly values: readonly Json[];
  /** Undefined for a list. */
  readonly names: readonly string[] | undefined;
  written: number;
}

function membersOf(of: Exclude<Json, string | number | boolean | null>): OpenMembers {
  if (Array.isArray(of)) return { of, values: of, names: undefined, written: 0 };
  const entries = Object.entries(of).sort(([a], [b]) => (a < b ? -1 : 1));
  return { of, values: entries.map(([, value]) => value), names: entries.map(([name]) => name), written: 0 };
}

function unboundedLeaf(value: string | number | boolean | null): string {
  if (value === Number.POSITIVE_INFINITY) return '1e999';
  if (value === Number.NEGATIVE_INFINITY) return '-1e999';
  if (typeof value === 'string' || Number.isFinite(value)) return JSON.stringify(value);
  return canonicalJson(value);
}

/**
 * Returns canonical JSON for data of any depth, size and text. It writes a lone surrogate as its
 * escape, and a number beyond the range of doubles as 1e999. Parsing the result returns the
 * original data.
 *
 * @throws {DocumentError} `invalid-value` if the value is not JSON, such as a value that contains
 *   itself
 */
export function unboundedJson(value: Json): string {
  const pieces: string[] = [];
  const open: OpenMembers[] = [];
  const holders = new Set<object>();
  const write = (one: Json): void => {
    if (one === null || typeof one !== 'object') {
      pieces.push(unboundedLeaf(one));
      return;
    }
    if (holders.has(one))
      throw new DocumentError('invalid-value', 'the value contains itself, which JSON cannot represent');
    holders.add(one);
    pieces.push(Array.isArray(one) ? '[' : '{');
    open.push(membersOf(one));
  };
  write(value);
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const { of, values, names, written } = last;
    if (written === values.length) {
      pieces.push(names === undefined ? ']' : '}');
      holders.delete(of);
      open.pop();
      continue;
    }
    if (written > 0) pieces.push(',');
    if (names !== undefined) pieces.push(JSON.stringify(names[written]), ':');
    last.written++;
    write(values[written] as Json);
  }
  return pieces.join('');
}

/**
 * Values known to be deeply frozen. `Object.isFrozen` is not enough, because it checks only the
 * surface.
 */
const frozen = new WeakSet<object>();

/**
 * Deeply freezes data that canonical JSON accepts, and returns it. Values frozen here before are
 * not walked again.
 */
export function freezeDeep<V>(value: V): V {
  if (value === null || typeof value !== 'object' || frozen.has(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) freezeDeep(member);
  frozen.add(value);
  return value;
}

/**
 * Canonical JSON of immutable values, so that the closed turns of a long chat are serialized once
 * and not at every version.
 */
const written = new WeakMap<object, string>();

/**
 * Returns `canonicalJson` of an object that is serialized repeatedly. It deeply freezes the object
 * and caches the result. Throws the same errors.
 */
export function lastingJson(value: object): string {
  const known = written.get(value);
  if (known !== undefined) return known;
  const text = canonicalJson(value);
  // Only deeply frozen values may be cached by identity.
  written.set(freezeDeep(value), text);
  return text;
}

function valueJson(value: unknown, name: string): string {
  if (!Array.isArray(value)) return canonicalJson(value);
  if (value.every((member) => typeof member === 'string')) {
    assertPlainJson(value, name);
    return JSON.stringify(value);
  }
  const members = value.map((member) =>
    member !== null && typeof member === 'object' ? lastingJson(member) : canonicalJson(member),
  );
  return `[${members.join(',')}]`;
}

/**
 * Returns the canonical JSON of type-specific fields: the bytes of `canonicalJson`, in time linear
 * in the new data. Objects in lists (turns) are frozen and cached.
 *
 * @throws {DocumentError} if canonical JSON rejects a value
 */
export function canonicalFields(fields: object): string {
  const members = Object.entries(fields).filter(([, value]) => value !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, value]) => `${JSON.stringify(key)}:${valueJson(value, key)}`).join(',')}}`;
}
