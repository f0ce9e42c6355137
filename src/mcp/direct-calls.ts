import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  type CallToolResult,
  ErrorCode,
  type JSONRPCMessage,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';
import { type CallParams, directCall, isId, isPlain } from './check-message.js';

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
