import { setTimeout as pause } from 'node:timers/promises';
import { type CallToolResult, CreateMessageResultSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import type { Exchange, ServedTool } from '../../src/mcp/adapter.js';

/** A red pixel and a silent moment: the smallest files of their kinds. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

/** These tools are called over HTTP, where every call comes through the SDK. */
type ThroughSdk = Required<Exchange>;

type Run = (args: Readonly<Record<string, unknown>>, exchange: ThroughSdk) => Promise<CallToolResult> | CallToolResult;

function fixture(name: string, run: Run, inputSchema: object = { type: 'object', properties: {} }): ServedTool {
  return {
    definition: {
      name,
      description: `Fixture ${name}`,
      inputSchema: inputSchema as ServedTool['definition']['inputSchema'],
    },
    call: async (args, exchange) => run(args as Readonly<Record<string, unknown>>, exchange as ThroughSdk),
  };
}

const text = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] });
const withText = (argument: string): object => ({
  type: 'object',
  properties: { [argument]: { type: 'string' } },
  required: [argument],
});

async function logThrice(_args: unknown, { request }: ThroughSdk): Promise<CallToolResult> {
  for (const [index, data] of [
    'Tool execution started',
    'Tool processing data',
    'Tool execution completed',
  ].entries()) {
    if (index > 0) await pause(50);
    await request.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
  }
  return text('logged three times');
}

async function reportProgress(_args: unknown, { progress }: Exchange): Promise<CallToolResult> {
  for (const done of [0, 50, 100]) {
    if (done > 0) await pause(50);
    await progress?.(`${done} of 100`, done, 100);
  }
  return text('reported progress');
}

async function sample({ prompt }: Readonly<Record<string, unknown>>, { request }: ThroughSdk): Promise<CallToolResult> {
  const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: String(prompt) } }];
  const { content } = await request.sendRequest(
    { method: 'sampling/createMessage', params: { messages, maxTokens: 100 } },
    CreateMessageResultSchema,
  );
  return text(
    `LLM response: ${!Array.isArray(content) && content.type === 'text' ? content.text : JSON.stringify(content)}`,
  );
}

function elicit(
  properties: object,
  required: readonly string[],
  say: (action: string, content: string) => string,
): Run {
  return async ({ message }, { request }) => {
    const params = {
      message: String(message ?? 'Please answer'),
      requestedSchema: { type: 'object' as const, properties, required },
    };
    const answer = await request.sendRequest(
      { method: 'elicitation/create', params: params as never },
      ElicitResultSchema,
    );
    return text(say(answer.action, JSON.stringify(answer.content ?? {})));
  };
}

const completed = (action: string, content: string): string =>
  `Elicitation completed: action=${action}, content=${content}`;

const CONTACT = {
  username: { type: 'string', description: "User's response" },
  email: { type: 'string', description: "User's email address" },
};
const DEFAULTS = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
};
const titled = (...pairs: readonly (readonly [string, string])[]): object[] =>
  pairs.map(([value, title]) => ({ const: value, title }));
const ENUMS = {
  untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
  titledSingle: {
    type: 'string',
    oneOf: titled(['value1', 'First Option'], ['value2', 'Second Option'], ['value3', 'Third Option']),
  },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
  titledMulti: {
    type: 'array',
    items: { anyOf: titled(['value1', 'First Choice'], ['value2', 'Second Choice'], ['value3', 'Third Choice']) },
  },
};

const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
  additionalProperties: false,
};

const MIXED: CallToolResult = {
  content: [
    { type: 'text', text: 'Multiple content types test:' },
    { type: 'image', data: PNG, mimeType: 'image/png' },
    {
      type: 'resource',
      resource: {
        uri: 'test://mixed-content-resource',
        mimeType: 'application/json',
        text: '{"test":"data","value":123}',
      },
    },
  ],
};
const EMBEDDED: CallToolResult = {
  content: [
    {
      type: 'resource',
      resource: {
        uri: 'test://embedded-resource',
        mimeType: 'text/plain',
        text: 'This is an embedded resource content.',
      },
    },
  ],
};

/** The tools that the conformance suite calls by name. */
export const FIXTURE_TOOLS: readonly ServedTool[] = [
  fixture('test_simple_text', () => text('This is a simple text response for testing.')),
  fixture('test_image_content', () => ({ content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] })),
  fixture('test_audio_content', () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] })),
  fixture('test_embedded_resource', () => EMBEDDED),
  fixture('test_multiple_content_types', () => MIXED),
  fixture('test_tool_with_logging', logThrice),
  fixture('test_error_handling', () => ({
    ...text('This tool intentionally returns an error for testing'),
    isError: true,
  })),
  fixture('test_tool_with_progress', reportProgress),
  fixture('test_sampling', sample, withText('prompt')),
  fixture(
    'test_elicitation',
    elicit(
      CONTACT,
      ['username', 'email'],
      (action, content) => `User response: action: ${action}, content: ${content}`,
    ),
    withText('message'),
  ),
  fixture('test_elicitation_sep1034_defaults', elicit(DEFAULTS, [], completed)),
  fixture('test_elicitation_sep1330_enums', elicit(ENUMS, [], completed)),
  fixture('test_reconnection', async (_args, { request }) => {
    request.closeSSEStream?.();
    await pause(100);
    return text('answered after the stream was closed');
  }),
  fixture('json_schema_2020_12_tool', () => text('ok'), SCHEMA_2020_12),
];
