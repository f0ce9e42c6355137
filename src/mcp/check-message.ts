import { randomUUID } from 'node:crypto';
import {
  type CallToolRequest,
  CallToolRequestSchema,
  ErrorCode,
  InitializeRequestSchema,
  JSONRPCMessageSchema,
  JSONRPCRequestSchema,
  ListToolsRequestSchema,
  PingRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type * as z from 'zod';
import { isDeeperThan } from '../values/json-object.js';

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
 * @throws {SyntaxError} the text is not JSON
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
 * Finds the id of an overlong request in one of its two ends. Null if neither has it. A number
 * becomes a text for {@link stringifyExact}.
 */
export function idIn(head: string, tail: string): unknown {
  const found = ID_AT_START.exec(head)?.[1] ?? ID_AT_END.exec(tail)?.[1];
  if (found === undefined) return null;
  return found.startsWith('"') ? JSON.parse(found) : exactNumber(found);
}

/** Serialises a message as JSON and restores the digits of each {@link exactNumber}. */
export const stringifyExact = (message: unknown): string => JSON.stringify(message).replace(MARKED, '$1');

/** The JSON-RPC error of a rejected message. */
export interface MessageRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Maximum nesting of a message, because code that walks it may recurse. */
const DEEPEST_MESSAGE = 512;

/**
 * Returns the error of a message that nests too deep, or undefined. `chars` is its length as JSON.
 * Each level takes two characters, so a short message needs no check.
 */
export function tooDeep(message: unknown, chars = Number.POSITIVE_INFINITY): MessageRefusal | undefined {
  if (chars <= 2 * DEEPEST_MESSAGE || !isDeeperThan(message, DEEPEST_MESSAGE)) return undefined;
  return {
    code: ErrorCode.InvalidRequest,
    message: `The message nests deeper than ${DEEPEST_MESSAGE} levels; nothing was done. Send deeper data as text.`,
  };
}

type Members = Record<string, unknown>;

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function dropNullMembers(members: Members): void {
  for (const name of Object.keys(members)) if (members[name] === null) delete members[name];
}

/**
 * Removes null parameters in place. Clients in languages without `undefined` send null for omitted
 * ones.
 */
export function dropNullParams(message: unknown): void {
  if (!isMembers(message)) return;
  if (message.params === null) delete message.params;
  if (!isMembers(message.params)) return;
  dropNullMembers(message.params);
  if (isMembers(message.params._meta)) dropNullMembers(message.params._meta);
}

/** The SDK's schemas of the requests that are answered here. */
const REQUESTS: ReadonlyMap<unknown, z.ZodType> = new Map<unknown, z.ZodType>([
  ['initialize', InitializeRequestSchema],
  ['ping', PingRequestSchema],
  ['tools/list', ListToolsRequestSchema],
  ['tools/call', CallToolRequestSchema],
]);

interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

function refusalFor(method: unknown, issues: readonly Issue[] = []): MessageRefusal {
  const [{ path, message } = { path: [], message: 'invalid' }] = issues;
  const place = path.map(String).join('.');
  const what = path[0] === 'id' ? 'expected a string or a number' : message.replace(/^Invalid input: /, '');
  const name = typeof method === 'string' ? `request ${method.slice(0, 100)}` : 'message';
  const where = place === '' ? '' : ` at ${place.slice(0, 200)}`;
  return {
    code: path[0] === 'params' ? ErrorCode.InvalidParams : ErrorCode.InvalidRequest,
    message: `The ${name} is invalid${where}: ${what.slice(0, 300)}; nothing was done. Send it as MCP defines it.`,
  };
}

/**
 * Returns why a message is not valid JSON-RPC for MCP, or lacks a parameter of its method.
 * Undefined if it is valid.
 */
export function refusalOf(message: unknown): MessageRefusal | undefined {
  const method = isMembers(message) ? message.method : undefined;
  if (!JSONRPCMessageSchema.safeParse(message).success)
    return refusalFor(method, JSONRPCRequestSchema.safeParse(message).error?.issues);
  const schema = REQUESTS.get(method);
  const parsed = isMembers(message) && Object.hasOwn(message, 'id') ? schema?.safeParse(message) : undefined;
  return parsed?.success === false ? refusalFor(method, parsed.error.issues) : undefined;
}

/**
 * Returns the id for the answer to a rejected message. Null if it has no valid id, undefined if it
 * expects no answer.
 */
export function answeredId(message: unknown): string | number | null | undefined {
  if (!isMembers(message)) return null;
  const { id, method } = message;
  const isResponse = method === undefined && (Object.hasOwn(message, 'result') || Object.hasOwn(message, 'error'));
  if (isResponse || (typeof method === 'string' && !Object.hasOwn(message, 'id'))) return undefined;
  return typeof id === 'string' || Number.isSafeInteger(id) ? (id as string | number) : null;
}

/** The parameters of a tool call. */
export type CallParams = CallToolRequest['params'];
