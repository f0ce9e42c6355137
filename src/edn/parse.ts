import { type EDNVal, parseEDNString } from 'edn-data';
import { ownMember } from '../values/own-member.js';
import { EdnError } from './errors.js';
import {
  checkDate,
  checkString,
  EdnList,
  EdnMap,
  EdnSet,
  EdnSymbol,
  EdnTagged,
  type EdnValue,
  Keyword,
  MAX_DEPTH,
  MAX_NAME_LENGTH,
} from './values.js';

/** Maximum length of an EDN text. Only small answers are EDN; larger ones are transit. */
export const MAX_EDN_CHARS = 4 * 1024 * 1024;

const CLOSER: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', '#{': '}' };
const STRING = /"[^"\\]*(?:\\(?:[trnbf\\"]|u[0-9a-fA-F]{4})[^"\\]*)*"/y;
const SPACE = /[ ,\t\n\r]+/y;
const TOKEN = /[^ ,\t\n\r()[\]{}"]+/y;
const INTEGER = /^[-+]?(?:0|[1-9][0-9]*)$/;
const FLOAT = /^[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const TAG = /^#[A-Za-z][\w.*+!?<>=$%&/-]*$/;
const NAME = /^:?[A-Za-z_*!?$%&=<>+./-][\w*!?$%&=<>+.'/#-]*$/;

interface Frame {
  readonly opener: string;
  /** Number of forms in the frame so far. */
  count: number;
  /** Whether a tag was read whose value has not been read yet. */
  pendingTag: boolean;
}

/**
 * Checks in one linear pass that a text is exactly one complete EDN form of the kind that a
 * database returns.
 *
 * Comments, discards, characters, metadata, namespaced maps, big and symbolic numbers are rejected.
 * The underlying parser reads them wrongly or loses digits, and no answer of XTDB needs them.
 *
 * @throws {EdnError} `truncated`, `mismatched`, `trailing`, `unsupported`, `bad-number`,
 *   `bad-string`, `bad-name`, `too-large`, `too-deep`
 */
function scan(text: string): void {
  if (text.length > MAX_EDN_CHARS)
    throw new EdnError('too-large', `An EDN text of ${text.length} characters is over the limit of ${MAX_EDN_CHARS}.`);
  const top: Frame = { opener: '', count: 0, pendingTag: false };
  const stack: Frame[] = [top];
  let at = 0;
  while (at < text.length) {
    const space = matchAt(SPACE, text, at);
    if (space !== undefined) {
      at += space.length;
      continue;
    }
    at = step(text, at, stack);
  }
  if (stack.length > 1) throw new EdnError('truncated', `The text ends inside ${stack.length - 1} open bracket(s).`);
  if (top.pendingTag || top.count === 0) throw new EdnError('truncated', 'The text ends before its form is complete.');
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/** Consumes one bracket, string or token and returns the position after it. */
function step(text: string, at: number, stack: Frame[]): number {
  const char = text[at] ?? '';
  const opener = char === '#' && text[at + 1] === '{' ? '#{' : char;
  if (opener in CLOSER) {
    addForm(stack, at);
    if (stack.length > MAX_DEPTH) throw new EdnError('too-deep', `The text nests deeper than ${MAX_DEPTH} levels.`);
    stack.push({ opener, count: 0, pendingTag: false });
    return at + opener.length;
  }
  if (char === ')' || char === ']' || char === '}') {
    close(char, at, stack);
    return at + 1;
  }
  if (char === '"') {
    const string = matchAt(STRING, text, at);
    if (string === undefined) throw brokenString(text, at);
    addForm(stack, at);
    return at + string.length;
  }
  const token = matchAt(TOKEN, text, at) ?? char;
  if (checkToken(token, at) === 'tag') {
    const frame = stack[stack.length - 1];
    if (frame?.opener === '' && frame.count > 0)
      throw new EdnError('trailing', `A second form begins at character ${at}.`);
    if (frame !== undefined) frame.pendingTag = true;
  } else {
    addForm(stack, at);
  }
  return at + token.length;
}

function addForm(stack: readonly Frame[], at: number): void {
  const frame = stack[stack.length - 1];
  if (frame === undefined) return;
  if (frame.opener === '' && frame.count > 0)
    throw new EdnError('trailing', `A second form begins at character ${at}.`);
  frame.count += 1;
  frame.pendingTag = false;
}

function close(char: string, at: number, stack: Frame[]): void {
  const frame = stack.pop();
  if (frame === undefined || ownMember(CLOSER, frame.opener) !== char)
    throw new EdnError('mismatched', `The closing ${char} at character ${at} has no opening bracket.`);
  if (frame.pendingTag) throw new EdnError('truncated', `A tag before character ${at} has no value.`);
  if (frame.opener === '{' && frame.count % 2 === 1)
    throw new EdnError('truncated', `The map that ends at character ${at} has a key without a value.`);
}

/** Distinguishes an unterminated string from one with an escape that EDN does not have. */
function brokenString(text: string, at: number): EdnError {
  for (let i = at + 1; i < text.length; i += 1) {
    if (text[i] === '"') break;
    if (text[i] !== '\\') continue;
    if (i + 1 < text.length && !/^\\(?:[trnbf\\"]|u[0-9a-fA-F]{0,4}$|u[0-9a-fA-F]{4})/.test(text.slice(i, i + 6))) {
      return new EdnError('bad-string', `The string at character ${at} holds an unknown escape.`);
    }
    i += 1;
  }
  return new EdnError('truncated', `The string at character ${at} does not end.`);
}

function checkToken(token: string, at: number): 'tag' | 'form' {
  if (token.length > MAX_NAME_LENGTH)
    throw new EdnError('too-large', `The token at character ${at} is longer than ${MAX_NAME_LENGTH} characters.`);
  if (TAG.test(token)) {
    // The underlying parser looks its handlers up in a plain object, where these names would find
    // inherited functions.
    if (token.slice(1) in Object.prototype)
      throw new EdnError('unsupported', `The tag at character ${at} is not one that can be read.`);
    return 'tag';
  }
  if (/^[-+]?[0-9]/.test(token)) {
    checkNumberToken(token, at);
    return 'form';
  }
  if (!NAME.test(token))
    throw new EdnError('unsupported', `Cannot read ${JSON.stringify(token.slice(0, 20))} at character ${at}.`);
  return 'form';
}

function checkNumberToken(token: string, at: number): void {
  const isInteger = INTEGER.test(token);
  if (!isInteger && !FLOAT.test(token))
    throw new EdnError(
      'bad-number',
      `${JSON.stringify(token.slice(0, 20))} at character ${at} is not a number that can be read.`,
    );
  const value = Number(token);
  if (isInteger ? !Number.isSafeInteger(value) : !Number.isFinite(value)) {
    throw new EdnError('bad-number', `The number at character ${at} cannot be read without loss.`);
  }
}

/**
 * Parses a text that contains exactly one complete EDN form.
 *
 * Meant for small answers (receipts, a basis, error maps). Truncated texts, mismatched brackets,
 * trailing text, numbers that would lose digits and duplicate keys are errors. They never yield a
 * shorter value.
 *
 * @throws {EdnError}
 */
export function parse(text: string): EdnValue {
  scan(text);
  let parsed: unknown;
  try {
    parsed = parseEDNString(text);
  } catch (cause) {
    throw new EdnError('unsupported', 'The text could not be read as EDN.', { cause });
  }
  return fromReaderValue(parsed as EDNVal);
}

function fromReaderValue(value: EDNVal): EdnValue {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Object.is(value, -0) ? 0 : value;
  if (typeof value === 'string') return checkString(value);
  if (Array.isArray(value)) return value.map(fromReaderValue);
  if (value instanceof Date) return checkDate(value);
  if (typeof value === 'object' && !(value instanceof Map || value instanceof Set)) {
    if ('key' in value) return new Keyword(value.key);
    if ('sym' in value) return new EdnSymbol(value.sym);
    if ('list' in value) return new EdnList(value.list.map(fromReaderValue));
    if ('set' in value) return new EdnSet(value.set.map(fromReaderValue));
    if ('map' in value) return fromReaderMap(value.map);
    if ('tag' in value) return new EdnTagged(value.tag, fromReaderValue(value.val));
  }
  throw new EdnError('unsupported', 'The text contains an unsupported kind of value.');
}

function fromReaderMap(entries: readonly (readonly [EDNVal, EDNVal])[]): EdnMap {
  const seen = new Set<string>();
  const flat: EdnValue[] = [];
  for (const [rawKey, rawValue] of entries) {
    const key = fromReaderValue(rawKey);
    const identity =
      key instanceof Keyword ? `:${key.name}` : typeof key === 'string' ? JSON.stringify(key) : undefined;
    if (identity !== undefined) {
      if (seen.has(identity))
        throw new EdnError('duplicate-key', `A map holds the key ${identity.slice(0, 40)} twice.`);
      seen.add(identity);
    }
    flat.push(key, fromReaderValue(rawValue));
  }
  return new EdnMap(flat);
}
