import { setImmediate as nextTurn } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  type Implementation,
  ListToolsRequestSchema,
  type ServerCapabilities,
  type ServerNotification,
  type ServerRequest,
  type Tool as ToolDefinition,
} from '@modelcontextprotocol/sdk/types.js';
import type { Logger } from '../host/log.js';
import { NO_TELEMETRY, type Telemetry, type Tell } from '../telemetry/telemetry.js';
import { parseTraceparent, type TraceContext } from '../telemetry/trace.js';
import { defined } from '../values/defined.js';
import { type CallParams, refusalOf } from './check-message.js';

/** Maximum size of a result in bytes of JSON. Both sides close a connection on a line of 10 MiB. */
const LONGEST_RESULT_BYTES = 8 * 1024 * 1024;

/** Bytes reserved for a result without its texts. Its `_meta` holds some ids and numbers. */
const RESERVED_BYTES = 1024 * 1024;

/** One call as received over the protocol. */
export interface Exchange {
  readonly signal: AbortSignal;
  /** The request's `_meta`, including the client's additions. */
  readonly meta: Readonly<Record<string, unknown>>;
  /**
   * Notifies the client that the call is still running. Undefined if the client did not request
   * progress.
   */
  readonly progress: ((message: string, done?: number, total?: number) => Promise<void>) | undefined;
  /** Adds facts to the call's telemetry. */
  readonly tell: Tell;
  /** The SDK's view of the request. */
  readonly request: SdkRequest;
}

type SdkRequest = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** A tool as the protocol lists and calls it. */
export interface ServedTool {
  readonly definition: ToolDefinition;
  call(args: unknown, exchange: Exchange): Promise<CallToolResult>;
}

/** The parts of one connection's server. */
export interface AdapterOptions {
  readonly info: Implementation;
  readonly instructions?: string;
  /** Called at the first list or call, so that `initialize` does not wait. */
  readonly tools: () => Promise<readonly ServedTool[]>;
  /** Capabilities other than tools. */
  readonly capabilities?: ServerCapabilities;
  readonly log: Logger;
  /** Telemetry sink for calls. Default: none. */
  readonly telemetry?: Telemetry;
}

/**
 * A protocol failure: an unknown tool or a malformed request. All other failures are results with
 * `isError`.
 */
class RequestFailure extends Error {
  override readonly name = 'RequestFailure';
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** Returns the result of a failed call. Its text begins with "Error: ". */
export function failedCall(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

function withinLine(result: CallToolResult, name: string): CallToolResult {
  const units = result.content.reduce(
    (sum, part) => sum + (part.type === 'text' ? part.text.length : LONGEST_RESULT_BYTES),
    0,
  );
  // A UTF-16 unit takes at most six bytes of JSON. The other members need far less than their
  // reserve.
  if (units * 6 < LONGEST_RESULT_BYTES - RESERVED_BYTES) return result;
  const bytes = Buffer.byteLength(JSON.stringify(result));
  if (bytes <= LONGEST_RESULT_BYTES) return result;
  return failedCall(
    `Error: the answer of ${name} has ${bytes} bytes, and the limit is ${LONGEST_RESULT_BYTES}.\n` +
      'Request less of it with limit.',
  );
}

function exchangeOf(
  { _meta: meta = {} }: CallParams,
  request: SdkRequest,
  { log, tell }: { readonly log: Logger; readonly tell: Tell },
): Exchange {
  const token = meta.progressToken;
  let steps = 0;
  const progress = async (message: string, done?: number, total?: number): Promise<void> => {
    if (token === undefined) return;
    const params = { progressToken: token, progress: done ?? ++steps, ...defined({ total }), message };
    await request
      .sendNotification({ method: 'notifications/progress', params })
      .catch((error: unknown) => log.debug({ err: error }, 'progress was not delivered'));
  };
  return { signal: request.signal, meta, progress: token === undefined ? undefined : progress, tell, request };
}

/** Returns the trace context of a call: from the call itself, or else from its HTTP request. */
function callerOf({ _meta }: CallParams, { requestInfo }: SdkRequest): TraceContext | undefined {
  return parseTraceparent(_meta?.traceparent) ?? parseTraceparent(requestInfo?.headers.traceparent);
}

/** A server with its running requests. */
export interface ProtocolServer {
  readonly server: Server;
  /** Resolves when every received request has been answered. */
  idle(): Promise<void>;
}

/** Counts running requests. */
class Running {
  readonly #work = new Set<Promise<unknown>>();

  track<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    const forget = (): void => void this.#work.delete(work);
    work.then(forget, forget);
    return work;
  }

  async idle(): Promise<void> {
    // An answer is sent shortly after its work is done, so wait one more turn.
    do {
      await Promise.allSettled(this.#work);
      await nextTurn();
    } while (this.#work.size > 0);
  }
}

/**
 * Creates the MCP server of one connection: tools/list in one page and a fixed order, tools/call by
 * name. The SDK's low-level server passes our JSON Schemas on unchanged, and allows an unknown tool
 * to be a protocol error.
 */
export function createProtocolServer(options: AdapterOptions): ProtocolServer {
  const { info, instructions, log, telemetry = NO_TELEMETRY } = options;
  let loading: Promise<readonly ServedTool[]> | undefined;
  const tools = (): Promise<readonly ServedTool[]> => {
    loading ??= options.tools();
    return loading;
  };
  const capabilities = { ...options.capabilities, tools: {} };
  const server = new Server(info, { capabilities, ...defined({ instructions }) });
  server.onerror = (error) => log.warn({ err: error }, 'protocol error');
  const list = async () => ({ tools: (await tools()).map(({ definition }) => definition) });
  const call = async (params: CallParams, request: SdkRequest): Promise<CallToolResult> => {
    const offered = await tools();
    const tool = offered.find(({ definition }) => definition.name === params.name);
    if (tool === undefined) {
      const names = offered.map(({ definition }) => definition.name).join(', ');
      throw new RequestFailure(
        ErrorCode.InvalidParams,
        `Unknown tool: ${params.name.slice(0, 100)}. Known tools: ${names}`,
      );
    }
    const perform = async (tell: Tell): Promise<CallToolResult> => {
      try {
        return withinLine(
          await tool.call(params.arguments ?? {}, exchangeOf(params, request, { log, tell })),
          params.name,
        );
      } catch (error) {
        log.error({ err: error, tool: params.name }, 'a call failed inside');
        tell({ 'error.type': 'inside' });
        return failedCall(
          `Error: ${params.name} failed with an internal error: ` +
            `${error instanceof Error ? error.message.slice(0, 500) : 'unknown failure'}`,
        );
      }
    };
    const facts = {
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': params.name,
    } as const;
    return telemetry.observe({ activity: 'call', facts, parent: callerOf(params, request) }, perform);
  };
  const running = new Running();
  server.setRequestHandler(ListToolsRequestSchema, () => running.track(list()));
  // For a registered handler, the SDK would validate each request twice, and each result again.
  server.fallbackRequestHandler = async (request, extra) => {
    if (request.method !== 'tools/call') throw new RequestFailure(ErrorCode.MethodNotFound, 'Method not found');
    const refusal = refusalOf(request);
    if (refusal !== undefined) throw new RequestFailure(refusal.code, refusal.message);
    return running.track(call(CallToolRequestSchema.parse(request).params, extra));
  };
  return { server, idle: () => running.idle() };
}
