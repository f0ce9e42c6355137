import {
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

/** The JSON-RPC error of a rejected message. */
export interface MessageRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Maximum nesting of a message, because code that walks it may recurse. */
const DEEPEST_MESSAGE = 512;

/**
 * Returns the error of a message that nests too deep, or undefined. `chars` is its length as JSON,
 * because each level takes two characters.
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
