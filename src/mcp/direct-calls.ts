import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  type CallToolRequest,
  type CallToolResult,
  ErrorCode,
  type JSONRPCMessage,
  RELATED_TASK_META_KEY,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';

/** What a call of a tool asks for. */
export type CallParams = CallToolRequest['params'];

type Members = Readonly<Record<string, unknown>>;

/** An object whose members can be read one by one: none of them would be taken for a prototype by who copies it. */
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

/** The members of a request, and no other. */
const REQUEST_MEMBERS = 4;

/** The call that a message asks for; undefined for any message that the SDK would refuse as a call, or treat as more than one. */
export function directCall(message: unknown): { readonly id: RequestId; readonly params: CallParams } | undefined {
  if (!isPlain(message) || message.method !== 'tools/call' || message.jsonrpc !== '2.0') return undefined;
  const { id, params } = message;
  if (!isId(id) || !isCallParams(params) || Object.keys(message).length !== REQUEST_MEMBERS) return undefined;
  return { id, params };
}

/** The error that answers a request which failed by itself, as the SDK makes it. */
function errorAnswer(id: RequestId, error: unknown): JSONRPCMessage {
  const { code, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const known = Number.isSafeInteger(code) ? (code as number) : ErrorCode.InternalError;
  return { jsonrpc: '2.0', id, error: { code: known, message: typeof message === 'string' ? message : 'Internal error' } };
}

/** A controller that has made its signal, which takes as long as the rest of a call's way through here. */
function preparedController(): AbortController {
  const controller = new AbortController();
  void controller.signal;
  return controller;
}

/**
 * Calls of tools that are answered without the SDK, whose way checks each message against five schemas and passes it through eight promises: a tenth of the time of a
 * small `read`. Requests that are not quite plain, and everything else, are left to it. A call that its client takes back is told so and not answered, as by the SDK.
 */
export class DirectCalls {
  readonly #running = new Map<RequestId, AbortController>();
  /** Of the next call: made while nobody waits for an answer. */
  #next: AbortController | undefined = preparedController();
  readonly #perform: (params: CallParams, signal: AbortSignal) => Promise<CallToolResult>;
  readonly #send: Transport['send'];

  /** `perform` makes the result; what it rejects with becomes an error of the protocol, by its `code` where that is a number. `send` takes the answer. */
  constructor(perform: (params: CallParams, signal: AbortSignal) => Promise<CallToolResult>, send: Transport['send']) {
    this.#perform = perform;
    this.#send = send;
  }

  /** Whether a message was for a call here, and was taken. Returns at once. */
  take(message: unknown): boolean {
    const call = directCall(message);
    if (call === undefined) return this.#cancels(message);
    void this.#answer(call.id, call.params);
    return true;
  }

  /** Tells all calls that are running that nobody waits for them any more. */
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
