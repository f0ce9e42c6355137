import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CompleteRequestSchema,
  GetPromptRequestSchema,
  type GetPromptResult,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ReadResourceRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { createLog } from '../../src/host/log.js';
import { type HttpServer, startHttpServer } from '../../src/http/http-server.js';
import { createProtocolServer } from '../../src/mcp/adapter.js';
import { FIXTURE_TOOLS, PNG } from './fixture-tools.js';

type Messages = GetPromptResult['messages'];
const user = (content: Messages[number]['content']): Messages[number] => ({ role: 'user', content });

const PROMPTS: Readonly<Record<string, (args: Readonly<Record<string, string>>) => Messages>> = {
  test_simple_prompt: () => [user({ type: 'text', text: 'This is a simple prompt for testing.' })],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [
    user({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }),
  ],
  test_prompt_with_embedded_resource: ({ resourceUri = '' }) => [
    user({
      type: 'resource',
      resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
    }),
    user({ type: 'text', text: 'Please process the embedded resource above.' }),
  ],
  test_prompt_with_image: () => [
    user({ type: 'image', data: PNG, mimeType: 'image/png' }),
    user({ type: 'text', text: 'Please analyze the image above.' }),
  ],
};
const PROMPT_ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  test_prompt_with_arguments: ['arg1', 'arg2'],
  test_prompt_with_embedded_resource: ['resourceUri'],
};

function resourceContents(uri: string) {
  const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
  if (id !== undefined)
    return {
      uri,
      mimeType: 'application/json',
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
    };
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: PNG };
  return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' };
}

/** Adds features that the product does not use, so that the whole suite can run on its adapter. */
function addFixtures(server: Server): void {
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: ['static-text', 'static-binary', 'watched-resource'].map((name) => ({
      uri: `test://${name}`,
      name,
      description: `Fixture ${name}`,
    })),
  }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [
      { uriTemplate: 'test://template/{id}/data', name: 'template', description: 'Fixture template' },
    ],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => ({ contents: [resourceContents(params.uri)] }));
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: Object.keys(PROMPTS).map((name) => ({
      name,
      description: `Fixture ${name}`,
      arguments: (PROMPT_ARGUMENTS[name] ?? []).map((argument) => ({
        name: argument,
        description: argument,
        required: true,
      })),
    })),
  }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => ({
    messages: PROMPTS[params.name]?.(params.arguments ?? {}) ?? [],
  }));
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => {
    const values = ['paris', 'park', 'party'].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
}

/**
 * Starts a server with everything that the conformance suite needs. It uses the product's adapter
 * and HTTP server.
 */
export function startFixtureServer(): Promise<HttpServer> {
  const log = createLog('silent');
  return startHttpServer({
    port: 0,
    token: undefined,
    log,
    events: () => new InMemoryEventStore(),
    connect: () => {
      const { server } = createProtocolServer({
        info: { name: 'conformance-fixtures', version: '1.0.0' },
        tools: async () => FIXTURE_TOOLS,
        capabilities: { resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} },
        log,
      });
      addFixtures(server);
      return { server, close: async () => undefined };
    },
  });
}
