import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** The model's action at one call: it calls tools, all at once, or it says something and stops. */
export type Move = {
  readonly tools?: readonly { readonly name: string; readonly args: Readonly<Record<string, unknown>> }[];
  readonly say?: string;
  /** Happens while the model thinks. */
  readonly meanwhile?: () => Promise<void>;
};

/** A message on the wire of chat completions. */
export interface WireMessage {
  readonly role: string;
  readonly content?: string | null | readonly { readonly type: string; readonly text?: string }[];
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
  readonly tool_call_id?: string;
}

/** One call as it arrived. */
export interface CapturedCall {
  readonly messages: readonly WireMessage[];
  /** Bytes of the request. */
  readonly raw: string;
  /** Whether it offers tools. Calls for titles and summaries offer none. */
  readonly main: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
  /**
   * Milliseconds since the model called tools: the work of the tools and of the harness. Undefined
   * after a person's message.
   */
  readonly sinceTools: number | undefined;
}

/**
 * A model that makes its scripted moves in order, regardless of its input. Tests look at the input.
 */
export interface LoopModel {
  /** The base address of its API, `/v1` included. */
  readonly baseUrl: string;
  readonly wire: LoopWire['name'];
  /** The model's window in tokens, as it reports it. */
  readonly window: number;
  readonly calls: readonly CapturedCall[];
  /** Number of moves left. */
  readonly left: number;
  add(moves: readonly Move[]): void;
  close(): Promise<void>;
}

type Json = Readonly<Record<string, unknown>>;

/** The answer of a wire: events of a stream, or a refusal. */
export type WireAnswer =
  | { readonly events: readonly (Json | string)[]; readonly named: boolean }
  | { readonly status: number; readonly refusal: Json };

/** A request as it arrived, and the move that answers it. */
export interface WireCall {
  readonly body: Json;
  readonly main: boolean;
  readonly move: Move;
  readonly number: number;
}

/** One way of talking to a model. */
export interface LoopWire {
  readonly name: 'chat' | 'anthropic';
  /** The end of the address of its calls. */
  readonly path: string;
  /** The names of the tools that a request offers. */
  readonly tools: (body: Json) => readonly string[];
  /** Returns a refusal. Undefined if the model makes its move. */
  readonly refused?: (body: Json, main: boolean) => WireAnswer | undefined;
  readonly answer: (call: WireCall) => WireAnswer;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

/** Chat completions. */
const CHAT: LoopWire = {
  name: 'chat',
  path: '/chat/completions',
  tools: ({ tools }) => ((tools ?? []) as readonly Json[]).map(({ function: tool }) => String((tool as Json).name)),
  answer: ({ move: { tools = [], say }, number }) => {
    const toolCalls = tools.map(({ name, args }, index) => ({
      index,
      id: `call_${number}_${index}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    }));
    const delta = {
      role: 'assistant',
      content: say ?? null,
      ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
    };
    const base = { id: `chat_${number}`, object: 'chat.completion.chunk', created: 0, model: 'scripted' };
    const events = [
      { ...base, choices: [{ index: 0, delta, finish_reason: null }] },
      {
        ...base,
        choices: [{ index: 0, delta: {}, finish_reason: toolCalls.length === 0 ? 'stop' : 'tool_calls' }],
        usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
      },
      '[DONE]',
    ];
    return { events, named: false };
  },
};

function send(response: ServerResponse, answer: WireAnswer): void {
  if ('refusal' in answer) {
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer.refusal));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of answer.events) {
    const data = typeof event === 'string' ? event : JSON.stringify(event);
    response.write(
      `${answer.named && typeof event !== 'string' ? `event: ${String(event.type)}\n` : ''}data: ${data}\n\n`,
    );
  }
  response.end();
}

/**
 * Starts the model on the loopback address. It thinks for `thinksMs` before each answer. Calls
 * without tools get a summary; a call without a scripted move gets a request to stop.
 */
export async function startLoopModel(thinksMs = 0, wire: LoopWire = CHAT, window = 200_000): Promise<LoopModel> {
  const calls: CapturedCall[] = [];
  const moves: Move[] = [];
  let number = 0;
  let calledAt: number | undefined;
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const arrivedAt = performance.now();
    const raw = await textOf(request);
    if (!(request.url ?? '').split('?', 1)[0]?.endsWith(wire.path)) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'scripted', object: 'model' }] }));
      return;
    }
    const body = JSON.parse(raw) as Json & Pick<CapturedCall, 'messages'>;
    const names = wire.tools(body);
    const main = names.includes('read');
    const sinceTools = main && calledAt !== undefined ? arrivedAt - calledAt : undefined;
    const refused = wire.refused?.(body, main);
    if (refused !== undefined) {
      send(response, refused);
      return;
    }
    calls.push({ messages: body.messages, raw, main, at: Date.now(), sinceTools });
    number += 1;
    const move: Move = main ? (moves.shift() ?? { say: 'nothing left' }) : { say: 'a summary of what was said before' };
    for (const { name } of move.tools ?? []) {
      if (!names.includes(name)) throw new Error(`no tool ${name} among ${names.join(', ')}`);
    }
    await Promise.all([move.meanwhile?.(), ...(thinksMs === 0 ? [] : [delay(thinksMs)])]);
    send(response, wire.answer({ body, main, move, number }));
    if (main) calledAt = move.tools === undefined ? undefined : performance.now();
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      response.writeHead(500);
      response.end(String(error));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    wire: wire.name,
    window,
    calls,
    get left() {
      return moves.length;
    },
    add: (more) => void moves.push(...more),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
