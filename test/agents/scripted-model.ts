import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The model's action at one point: it calls a tool whose name ends with `tool`, or says something
 * and stops. `tokens` is the size of the request that it reports.
 */
export type Turn =
  | { readonly tool: string; readonly args: Readonly<Record<string, unknown>>; readonly tokens?: number }
  | { readonly say: string; readonly tokens?: number };

/** A tool as the agent offers it to the model. */
export interface OfferedTool {
  readonly name: string;
  /** Codex groups the tools of an MCP server under the server's name. */
  readonly group?: string;
  /** Whether it takes free text, the script's argument `input`. */
  readonly isFree?: boolean;
  readonly description: string;
  readonly schema: unknown;
}

/** The input of the model. */
export interface Seen {
  readonly offered: readonly OfferedTool[];
  /** Texts of the tool results, oldest first. */
  readonly results: readonly string[];
  /** The body as it arrived. */
  readonly body: unknown;
}

/** A model on the loopback address that follows a script. */
export interface ScriptedModel {
  /** The base address of its API, `/v1` included. */
  readonly baseUrl: string;
  readonly seen: readonly Seen[];
  close(): Promise<void>;
}

type Json = Readonly<Record<string, unknown>>;

/** The API that an agent uses: how to read its requests and write answers. */
interface Dialect {
  readonly path: RegExp;
  read(body: Json): Pick<Seen, 'offered' | 'results'>;
  answer(turn: Turn, tool: OfferedTool | undefined, callId: string): readonly Json[];
  /** Whether each event is named by its type. */
  readonly named: boolean;
  /** The line that ends a stream, for a wire that has one. */
  readonly end?: string;
}

const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const textOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.map((part: Json) => String(part.text ?? '')).join('\n') : JSON.stringify(value);
};

/** Tools may come in groups, as from Codex. */
function responsesTools(tools: readonly Json[], group?: string): readonly OfferedTool[] {
  return tools.flatMap((tool) => {
    const inner = list(tool.tools);
    if (inner.length > 0) return responsesTools(inner, String(tool.name));
    const offered = {
      name: String(tool.name ?? ''),
      description: String(tool.description ?? ''),
      schema: tool.parameters,
      ...(tool.type === 'custom' ? { isFree: true } : {}),
    };
    return [group === undefined ? offered : { ...offered, group }];
  });
}

const RESPONSES: Dialect = {
  path: /\/responses$/,
  named: true,
  read: (body) => ({
    offered: responsesTools(list(body.tools)),
    results: list(body.input)
      .filter((item) => String(item.type).endsWith('call_output'))
      .map((item) => textOf(item.output)),
  }),
  answer: (turn, tool, callId) => {
    const item =
      'say' in turn
        ? {
            type: 'message',
            id: `msg_${callId}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: turn.say, annotations: [] }],
          }
        : tool?.isFree === true
          ? {
              type: 'custom_tool_call',
              id: `ctc_${callId}`,
              call_id: callId,
              name: tool.name,
              input: String(turn.args.input),
              status: 'completed',
            }
          : {
              type: 'function_call',
              id: `fc_${callId}`,
              call_id: callId,
              name: tool?.name,
              ...(tool?.group === undefined ? {} : { namespace: tool.group }),
              arguments: JSON.stringify(turn.args),
              status: 'completed',
            };
    const response = {
      id: `resp_${callId}`,
      object: 'response',
      created_at: 0,
      status: 'in_progress',
      output: [] as unknown[],
    };
    const usage = {
      input_tokens: turn.tokens ?? 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: (turn.tokens ?? 1) + 1,
    };
    return [
      { type: 'response.created', response },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { ...response, status: 'completed', output: [item], usage } },
    ];
  },
};

const CHAT: Dialect = {
  path: /\/chat\/completions$/,
  named: false,
  end: 'data: [DONE]\n\n',
  read: (body) => ({
    offered: list(body.tools).map(({ function: tool }) => {
      const { name, description, parameters } = tool as Json;
      return { name: String(name), description: String(description), schema: parameters };
    }),
    results: list(body.messages)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => textOf(content)),
  }),
  answer: (turn, tool, callId) => {
    const delta =
      'say' in turn
        ? { role: 'assistant', content: turn.say }
        : {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                index: 0,
                id: callId,
                type: 'function',
                function: { name: tool?.name, arguments: JSON.stringify(turn.args) },
              },
            ],
          };
    const chunk = (choice: Json): Json => ({
      id: `chat_${callId}`,
      object: 'chat.completion.chunk',
      created: 0,
      model: 'scripted',
      choices: [{ index: 0, ...choice }],
    });
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    return [
      chunk({ delta, finish_reason: null }),
      { ...chunk({ delta: {}, finish_reason: 'say' in turn ? 'stop' : 'tool_calls' }), usage },
    ];
  },
};

/** Anthropic Messages, as Claude Code speaks it. */
const MESSAGES: Dialect = {
  path: /\/messages$/,
  named: true,
  read: (body) => ({
    offered: list(body.tools).map(({ name, description, input_schema: schema }) => ({
      name: String(name),
      description: String(description),
      schema,
    })),
    results: list(body.messages)
      .flatMap(({ content }) => list(content))
      .filter(({ type }) => type === 'tool_result')
      .map(({ content }) => textOf(content)),
  }),
  answer: (turn, tool, callId) => {
    const isText = 'say' in turn;
    const usage = {
      input_tokens: turn.tokens ?? 1,
      output_tokens: 1,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    };
    const block = isText ? { type: 'text', text: '' } : { type: 'tool_use', id: callId, name: tool?.name, input: {} };
    const delta = isText
      ? { type: 'text_delta', text: turn.say }
      : { type: 'input_json_delta', partial_json: JSON.stringify(turn.args) };
    const message = { id: `msg_${callId}`, type: 'message', role: 'assistant', model: 'scripted', content: [], usage };
    return [
      { type: 'message_start', message: { ...message, stop_reason: null, stop_sequence: null } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: isText ? 'end_turn' : 'tool_use', stop_sequence: null }, usage },
      { type: 'message_stop' },
    ];
  },
};

/** Gemini's generateContent, as Gemini CLI speaks it. */
const GEMINI: Dialect = {
  path: /:streamGenerateContent$/,
  named: false,
  read: (body) => ({
    offered: list(body.tools).flatMap(({ functionDeclarations }) =>
      list(functionDeclarations).map(({ name, description, parametersJsonSchema: schema }) => ({
        name: String(name),
        description: String(description),
        schema,
      })),
    ),
    results: list(body.contents)
      .flatMap(({ parts }) => list(parts))
      .filter(({ functionResponse }) => functionResponse !== undefined)
      .map(({ functionResponse }) => JSON.stringify(functionResponse)),
  }),
  answer: (turn, tool, callId) => {
    const part =
      'say' in turn ? { text: turn.say } : { functionCall: { id: callId, name: tool?.name, args: turn.args } };
    return [
      {
        candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
        modelVersion: 'scripted',
      },
    ];
  },
};

const DIALECTS = [RESPONSES, CHAT, MESSAGES, GEMINI];

async function readBody(request: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString('utf8')) as Json);
}

function sendEvents(response: ServerResponse, events: readonly Json[], { named, end = '' }: Dialect): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events)
    response.write(`${named ? `event: ${String(event.type)}\n` : ''}data: ${JSON.stringify(event)}\n\n`);
  response.end(end);
}

/** Chooses the action by the request and its number, from 1. */
export type Plan = (request: Seen, number: number) => Turn | Promise<Turn>;

/**
 * Starts a model that follows the script. Its position follows from the tool results in the
 * request, so an agent's retries and side requests do not shift it. Requests without tools (titles,
 * summaries) get "ok". A plan in place of the script answers every request.
 */
export async function startScriptedModel(script: readonly Turn[] | Plan): Promise<ScriptedModel> {
  const seen: Seen[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const body = await readBody(request);
    const dialect = DIALECTS.find((one) => one.path.test(path));
    if (dialect === undefined) {
      response.writeHead(path.endsWith('/models') ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'scripted', object: 'model' }] }));
      return;
    }
    const { offered, results } = dialect.read(body);
    const asked = { offered, results, body };
    seen.push(asked);
    const planned =
      typeof script === 'function'
        ? await script(asked, seen.length)
        : offered.length === 0
          ? { say: 'ok' }
          : (script[Math.min(results.length, script.length - 1)] ?? { say: 'done' });
    const tool =
      'tool' in planned ? offered.find(({ name }) => new RegExp(`(^|[^a-z])${planned.tool}$`).test(name)) : undefined;
    const turn =
      'tool' in planned && tool === undefined
        ? { say: `no tool ${planned.tool} among ${offered.map(({ name }) => name).join(', ')}` }
        : planned;
    sendEvents(
      response,
      dialect.answer(turn, tool, `call_${typeof script === 'function' ? `n${seen.length}` : results.length + 1}`),
      dialect,
    );
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
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
