import { describe, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { CallToolResult, Progress } from '@modelcontextprotocol/sdk/types.js';
import * as z from 'zod';
import { createLog } from '../../../src/host/log.js';
import { createProtocolServer, type Exchange, type ServedTool } from '../../../src/mcp/adapter.js';

const tool = (
  name: string,
  call: (args: unknown, exchange: Exchange) => CallToolResult | Promise<CallToolResult>,
): ServedTool => ({
  definition: { name, description: name, inputSchema: { type: 'object', properties: {} } },
  call: async (args, exchange) => call(args, exchange),
});
const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

/** Runs `work` with a client of these tools. */
async function withClient(tools: readonly ServedTool[], work: (client: Client) => Promise<void>): Promise<void> {
  const { server } = createProtocolServer({
    info: { name: 's', version: '1' },
    instructions: 'how to',
    tools: async () => tools,
    log: createLog('silent'),
  });
  const client = new Client({ name: 'c', version: '1' });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(ours), client.connect(theirs)]);
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

describe('the protocol adapter', () => {
  test('lists the tools on one page, in order and unchanged', async () => {
    const tools = ['b', 'a', 'c'].map((name) => tool(name, () => said(name)));
    await withClient(tools, async (client) => {
      expect(await client.listTools()).toEqual({ tools: tools.map(({ definition }) => definition) });
      expect(client.getInstructions()).toBe('how to');
      expect(client.getServerCapabilities()).toEqual({ tools: {} });
    });
  });

  test('returns a protocol error for an unknown tool and an answer for a failing one', async () => {
    const broken = tool('broken', () => {
      throw new Error('out of luck');
    });
    await withClient([broken], async (client) => {
      await expect(client.callTool({ name: 'nope' })).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining('Unknown tool: nope. Known tools: broken'),
      });
      expect(await client.callTool({ name: 'broken' })).toEqual({
        ...said('Error: broken failed with an internal error: out of luck'),
        isError: true,
      });
    });
  });

  test('returns the SDK’s protocol errors for an unsupported method and an incomplete call', async () => {
    await withClient([tool('any', () => said('x'))], async (client) => {
      const ask = (method: string, params: Record<string, unknown>) => client.request({ method, params }, z.any());
      await expect(ask('resources/list', {})).rejects.toMatchObject({
        code: -32_601,
        message: expect.stringContaining('Method not found'),
      });
      await expect(ask('tools/call', { arguments: {} })).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining(
          'The request tools/call is invalid at params.name: expected string, received undefined;',
        ),
      });
      await expect(ask('tools/call', { name: 'any', arguments: ['x'] })).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining('at params.arguments: expected record, received array;'),
      });
    });
  });

  test('replaces an answer whose line would be near 10 MiB by an error', async () => {
    const controls = tool('controls', () => said('\u0001'.repeat(1_500_000)));
    const letters = tool('letters', () => said('x'.repeat(1_500_000)));
    await withClient([controls, letters], async (client) => {
      const refused = (await client.callTool({ name: 'controls' })) as CallToolResult;
      expect(refused).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^Error: the answer of controls has 9\d{6} bytes/) }],
      });
      expect((await client.callTool({ name: 'letters' })).isError).toBeUndefined();
    });
  });

  test('reports progress to exactly the clients that requested it', async () => {
    const seen: Progress[] = [];
    const slow = tool('slow', async (_args, { progress }) => {
      await progress?.('first');
      await progress?.('second', 50, 100);
      return said(progress === undefined ? 'quiet' : 'told');
    });
    await withClient([slow], async (client) => {
      expect(await client.callTool({ name: 'slow' })).toEqual(said('quiet'));
      expect(
        await client.callTool({ name: 'slow' }, undefined, { onprogress: (progress) => void seen.push(progress) }),
      ).toEqual(said('told'));
    });
    expect(seen).toEqual([
      { progress: 1, message: 'first' },
      { progress: 50, total: 100, message: 'second' },
    ]);
  });

  test('notifies a cancelled call', async () => {
    const controller = new AbortController();
    let told: unknown;
    const waiting = tool('waiting', (_args, { signal }) => {
      const over = new Promise<CallToolResult>((resolve) => {
        signal.addEventListener('abort', () => {
          told = signal.reason;
          resolve(said('late'));
        });
      });
      controller.abort('enough');
      return over;
    });
    await withClient([waiting], async (client) => {
      await expect(client.callTool({ name: 'waiting' }, undefined, { signal: controller.signal })).rejects.toThrow(
        /enough/,
      );
      await client.ping();
    });
    expect(String(told)).toContain('enough');
  });
});
