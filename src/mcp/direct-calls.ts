import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  type CallToolRequest,
  type CallToolResult,
  ErrorCode,
  type JSONRPCMessage,
  RELATED_TASK_META_KEY,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';

/** The parameters of a tool call. */
export type CallParams = CallToolRequest['params'];

type Members = Readonly<Record<string, unknown>>;

/**
 * Returns whether a value is an object without a `__proto__` member, which a copy could mistake for
 * its prototype.
 */
function isPlain(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !Object.hasOwn(value, '__proto__');
}

const isId = (value: unknown): value is RequestId => typeof value === 'string' || Number.isSafeInteger(value);

function isPlainMeta(value: unknown): boolean {
  if (value === undefined) return true;
  if (!isPlain(value) || RELATED_TASK_META_KEY in value) return false;
  const { progressToken } = value;
  return progressToken === undefined || isId(progressToken);
}

function isCallParams(value: unknown): value is CallParams {
  if (!isPlain(value) || typeof value.name !== 'string' || value.task !== undefined) return false;
  return (value.arguments === undefined || isPlain(value.arguments)) && isPlainMeta(value._meta);
}

/** Number of members that a request has. */
const REQUEST_MEMBERS = 4;

/**
 * Returns the call in a message. Undefined for a message that the SDK would reject as a call or
 * handle in another way.
 */
export function directCall(message: unknown): { readonly id: RequestId; readonly params: CallParams } | undefined {
  if (!isPlain(message) || message.method !== 'tools/call' || message.jsonrpc !== '2.0') return undefined;
  const { id, params } = message;
  if (!isId(id) || !isCallParams(params) || Object.keys(message).length !== REQUEST_MEMBERS) return undefined;
  return { id, params };
}

/** Returns the error response of a failed request, in the SDK's form. */
function errorAnswer(id: RequestId, error: unknown): JSONRPCMessage {
  const { code, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const known = Number.isSafeInteger(code) ? (code as number) : ErrorCode.InternalError;
  return {
    jsonrpc: '2.0',
    id,
    error: { code: known, message: typeof message === 'string' ? message : 'Internal error' },
  };
}

/**
 * Returns a controller with its signal already created, which takes as long as the rest of this
 * path.
 */
function preparedController(): AbortController {
  const controller = new AbortController();
  void controller.signal;
  return controller;
}

/**
 * Answers tool calls without the SDK. The SDK validates each message against five schemas and
 * passes it through eight promises, which takes a tenth of a small `read`. The SDK handles all
 * other messages. As in the SDK, a cancelled call is aborted and gets no answer.
 */
export class DirectCalls {
  readonly #running = new Map<RequestId, AbortController>();
  /** For the next call, created while no client waits. */
  #next: AbortController | undefined = preparedController();
  readonly #perform: (params: CallParams, signal: AbortSignal) => Promise<CallToolResult>;
  readonly #send: Transport['send'];

  /**
   * `perform` returns the result. Its rejection becomes a protocol error, with its `code` if that
   * is a number. `send` sends the answer.
   */
  constructor(perform: (params: CallParams, signal: AbortSignal) => Promise<CallToolResult>, send: Transport['send']) {
    this.#perform = perform;
    this.#send = send;
  }

  /** Takes a message for a direct call. Returns at once whether it took the message. */
  take(message: unknown): boolean {
    const call = directCall(message);
    if (call === undefined) return this.#cancels(message);
    void this.#answer(call.id, call.params);
    return true;
  }

  /** Aborts all running calls, because their client has gone. */
  close(): void {
    for (const controller of this.#running.values()) controller.abort();
    this.#running.clear();
  }

  async #answer(id: RequestId, params: CallParams): Promise<void> {
    const controller = this.#next ?? new AbortController();
    this.#next = undefined;
    this.#running.set(id, controller);
    const answer = await this.#perform(params, controller.signal).then(
      (result): JSONRPCMessage => ({ result, jsonrpc: '2.0', id }),
      (error: unknown) => errorAnswer(id, error),
    );
    if (this.#running.get(id) === controller) this.#running.delete(id);
    if (!controller.signal.aborted) await this.#send(answer);
    this.#next ??= preparedController();
  }

  #cancels(message: unknown): boolean {
    if (!isPlain(message) || message.method !== 'notifications/cancelled' || !isPlain(message.params)) return false;
    const { requestId, reason } = message.params;
    const controller = isId(requestId) ? this.#running.get(requestId) : undefined;
    controller?.abort(reason);
    return controller !== undefined;
  }
}
