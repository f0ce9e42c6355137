import { randomUUID } from 'node:crypto';

/** Prefix of a text that replaces a number inside this process. No client can know it. */
const MARK = randomUUID();
const MARKED = new RegExp(`"${MARK}:([^"]+)"`, 'g');
/** Matches brackets, and texts with the number after a member name. */
const TOKEN = /[{[]|[}\]]|"([^"\\]*(?:\\.[^"\\]*)*)"(?:\s*:\s*(-?\d[\d.eE+-]*))?/g;
/** Members that hold an id, with their depth in a message. */
const ID_DEPTHS: ReadonlyMap<string, number> = new Map([
  ['id', 1],
  ['requestId', 2],
  ['progressToken', 3],
]);

/** Returns a text that replaces a number with exactly these digits. */
const exactNumber = (digits: string): string => `${MARK}:${digits}`;

const isLossy = (value: unknown): boolean => typeof value === 'number' && !Number.isSafeInteger(value);

function hasLossyId(message: unknown): boolean {
  if (typeof message !== 'object' || message === null) return false;
  const { id, params } = message as { readonly id?: unknown; readonly params?: unknown };
  if (isLossy(id)) return true;
  if (typeof params !== 'object' || params === null) return false;
  const { requestId, _meta } = params as {
    readonly requestId?: unknown;
    readonly _meta?: { readonly progressToken?: unknown } | null;
  };
  return isLossy(requestId) || isLossy(_meta?.progressToken);
}

/**
 * Parses a line of JSON-RPC. Ids that are fractions, or too large for a double, become texts.
 * {@link stringifyExact} restores the client's digits, because a rounded id would match no request.
 *
 * @throws {SyntaxError} the text is no JSON
 */
export function parseExact(text: string): { readonly value: unknown; readonly isExact: boolean } {
  const value: unknown = JSON.parse(text);
  const isBatch = Array.isArray(value);
  if (!(isBatch ? value.some(hasLossyId) : hasLossyId(value))) return { value, isExact: false };
  let depth = isBatch ? -1 : 0;
  const marked = text.replace(TOKEN, (token, name: string | undefined, digits: string | undefined) => {
    if (name === undefined) depth += token === '{' || token === '[' ? 1 : -1;
    if (name === undefined || digits === undefined || ID_DEPTHS.get(name) !== depth || !isLossy(Number(digits)))
      return token;
    return `"${name}":"${exactNumber(digits)}"`;
  });
  return { value: JSON.parse(marked), isExact: true };
}

const SCALAR = String.raw`("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)`;
const NAMED = String.raw`"(?:jsonrpc|method)"\s*:\s*"(?:[^"\\]|\\.)*"`;
const ID_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${NAMED}\s*,\s*)*"id"\s*:\s*${SCALAR}\s*,`);
// A quote inside a string has a backslash before it, so this is a member of the outermost object.
const ID_AT_END = new RegExp(String.raw`,\s*"id"\s*:\s*${SCALAR}\s*(?:,\s*${NAMED}\s*)*\}\s*$`);

/**
 * Returns the id of a request from both of its ends. Null if neither holds it. A number becomes a
 * text for {@link stringifyExact}.
 */
export function idIn(head: string, tail: string): unknown {
  const found = ID_AT_START.exec(head)?.[1] ?? ID_AT_END.exec(tail)?.[1];
  if (found === undefined) return null;
  return found.startsWith('"') ? JSON.parse(found) : exactNumber(found);
}

/** Serialises a message as JSON and restores the digits of each {@link exactNumber}. */
export const stringifyExact = (message: unknown): string => JSON.stringify(message).replace(MARKED, '$1');
