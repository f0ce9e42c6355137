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
import { isDeeperThan } from '../values/json-depth.js';

/** Why a message is refused, as JSON-RPC says it. */
export interface MessageRefusal {
  readonly code: ErrorCode;
  readonly message: string;
}

/** The deepest nesting of a message: whatever walks a request may recurse. */
const DEEPEST_MESSAGE = 512;

/** Why a message that nests too deep is not read; undefined for one that does not. `chars` is its length as JSON: each level takes two of them. */
export function tooDeep(message: unknown, chars = Number.POSITIVE_INFINITY): MessageRefusal | undefined {
  if (chars <= 2 * DEEPEST_MESSAGE || !isDeeperThan(message, DEEPEST_MESSAGE)) return undefined;
  return {
    code: ErrorCode.InvalidRequest,
    message: `The message nests deeper than ${DEEPEST_MESSAGE} levels; nothing was done. Send deeper data as text.`,
  };
}

type Members = Record<string, unknown>;

const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value);

function dropNullMembers(members: Members): void {
  for (const name of Object.keys(members)) if (members[name] === null) delete members[name];
}

/** Removes parameters that are null, in place: clients in languages without `undefined` send them for what they leave out. */
export function dropNullParams(message: unknown): void {
  if (!isMembers(message)) return;
  if (message.params === null) delete message.params;
  if (!isMembers(message.params)) return;
  dropNullMembers(message.params);
  if (isMembers(message.params._meta)) dropNullMembers(message.params._meta);
}

/** What the SDK asks of the requests that are answered here. */
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

/** Why a message is no JSON-RPC of MCP, or lacks what its method needs; undefined for one that can be handled. */
export function refusalOf(message: unknown): MessageRefusal | undefined {
  const method = isMembers(message) ? message.method : undefined;
  if (!JSONRPCMessageSchema.safeParse(message).success) return refusalFor(method, JSONRPCRequestSchema.safeParse(message).error?.issues);
  const schema = REQUESTS.get(method);
  const parsed = isMembers(message) && Object.hasOwn(message, 'id') ? schema?.safeParse(message) : undefined;
  return parsed?.success === false ? refusalFor(method, parsed.error.issues) : undefined;
}

/** The id under which a message that is refused is answered; null where it has none that JSON-RPC knows, undefined where it wants no answer. */
export function answeredId(message: unknown): string | number | null | undefined {
  if (!isMembers(message)) return null;
  const { id, method } = message;
  const isResponse = method === undefined && (Object.hasOwn(message, 'result') || Object.hasOwn(message, 'error'));
  if (isResponse || (typeof method === 'string' && !Object.hasOwn(message, 'id'))) return undefined;
  return typeof id === 'string' || Number.isSafeInteger(id) ? (id as string | number) : null;
}
