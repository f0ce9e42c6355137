import type { ServerResponse } from 'node:http';
import { setImmediate as pause } from 'node:timers/promises';

type Json = Readonly<Record<string, unknown>>;

const named = (event: Json): string => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`;
const plain = (event: Json): string => `data: ${JSON.stringify(event)}\n\n`;

/** An answer of Anthropic Messages that thinks, speaks and calls a tool. */
export const anthropicStream = (id: string): string =>
  [
    {
      type: 'message_start',
      message: {
        id,
        type: 'message',
        role: 'assistant',
        model: 'claude-test',
        content: [],
        stop_reason: null,
        usage: {
          input_tokens: 3,
          cache_read_input_tokens: 200,
          cache_creation_input_tokens: 40,
          cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 30 },
          output_tokens: 1,
        },
      },
    },
    { type: 'ping' },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Grüße ☕' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2lnbmVk' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'I read ' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'the file.' } },
    { type: 'content_block_stop', index: 1 },
    {
      type: 'content_block_start',
      index: 2,
      content_block: { type: 'tool_use', id: 'toolu_7', name: 'Read', input: {} },
    },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"path":"a"}' } },
    { type: 'content_block_stop', index: 2 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: 17 },
      input_transformations: [{ type: 'thinking_dropped', blocks: 2 }],
    },
    { type: 'message_stop' },
  ]
    .map(named)
    .join('');

/** An answer of the Responses API with reasoning, a message and a call. */
export function responsesStream(id: string): string {
  const items = [
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'b3BhcXVl' },
    { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'shell', arguments: '{}' },
  ];
  const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 64 }, output_tokens: 9, total_tokens: 109 };
  return [
    { type: 'response.created', response: { id, status: 'in_progress', output: [] } },
    ...items.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
    { type: 'response.completed', response: { id, model: 'gpt-test', status: 'completed', output: items, usage } },
  ]
    .map(named)
    .join('');
}

/** An answer of chat completions with a call. */
export const chatStream = (id: string): string =>
  `${[
    { id, model: 'gpt-test', choices: [{ index: 0, delta: { role: 'assistant', content: 'Well.' } }] },
    { id, choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: 'call_9', function: { name: 'ls' } }] } }] },
    { id, choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    {
      id,
      choices: [],
      usage: { prompt_tokens: 50, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 32 } },
    },
  ]
    .map(plain)
    .join('')}data: [DONE]\n\n`;

/** An answer of Gemini with a call. */
export const geminiStream = (id: string): string =>
  [
    { responseId: id, candidates: [{ content: { parts: [{ text: 'Let me see.' }], role: 'model' } }] },
    {
      responseId: id,
      modelVersion: 'gemini-test',
      candidates: [
        { content: { parts: [{ functionCall: { id: 'g1', name: 'ls', args: {} } }] }, finishReason: 'STOP' },
      ],
      usageMetadata: { promptTokenCount: 70, cachedContentTokenCount: 20, candidatesTokenCount: 4 },
    },
  ]
    .map(plain)
    .join('');

/** Sends a stream in pieces of some bytes, which need not be whole events or characters. */
export async function stream(response: ServerResponse, text: string, pieceBytes = 37): Promise<void> {
  response.writeHead(200, 'OK', ['Content-Type', 'text/event-stream; charset=utf-8', 'X-Request-Id', 'req_1']);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    response.write(bytes.subarray(at, at + pieceBytes));
    await pause();
  }
  response.end();
}
