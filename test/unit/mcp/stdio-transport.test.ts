import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { StdioTransport } from '../../../src/mcp/stdio-transport.js';

const LONGEST = 4_000;
let input: PassThrough;
let output: PassThrough;
let received: JSONRPCMessage[];
let transport: StdioTransport;

beforeEach(async () => {
  [input, output] = [new PassThrough(), new PassThrough()];
  received = [];
  transport = new StdioTransport(input, output, LONGEST);
  transport.onmessage = (message) => received.push(message);
  await transport.start();
});
afterEach(() => {
  input.destroy();
});

/** Returns the answers once everything has been read. */
async function answers(): Promise<readonly unknown[]> {
  const sentinel = { jsonrpc: '2.0', id: 'last', method: 'ping' } as const;
  await new Promise<void>((resolve) => input.write(`${JSON.stringify(sentinel)}\n`, () => resolve()));
  await new Promise(setImmediate);
  expect(received.pop()).toEqual(sentinel);
  return String(output.read() ?? '')
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text) as unknown);
}

const call = (id: unknown, params: object): object => ({ jsonrpc: '2.0', id, method: 'tools/call', params });
const refused = (id: unknown, message: RegExp, code = -32_600) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message: expect.stringMatching(message) as unknown },
});

describe('lines', () => {
  test('are read from any chunks, and ignored if blank', async () => {
    const messages = [call(1, { name: 'ls', arguments: { path: 'ä€😀' } }), call('two', { name: 'ls' })];
    const bytes = Buffer.from(`\n${messages.map((message) => JSON.stringify(message)).join('\r\n\n')}\n`);
    for (let at = 0; at < bytes.length; at += 3) input.write(bytes.subarray(at, at + 3));
    expect(await answers()).toEqual([]);
    expect(received).toEqual(messages);
  });

  test.each([
    [
      'at its end',
      (text: string) => `{"method":"tools/call","params":{"arguments":{"content":"${text}"}},"jsonrpc":"2.0","id":7}`,
    ],
    [
      'at its start',
      (text: string) => `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"content":"${text}"}}}`,
    ],
  ])('are answered by id %s if they are too long, and the next is read', async (_where, line) => {
    input.write(`${line(String.raw`,\"id\":5}`.repeat(2_000))}\n`);
    expect(await answers()).toEqual([refused(7, /over the limit of 4000/)]);
  });

  test('are answered without an id if none can be found', async () => {
    input.write(`${'x'.repeat(3 * LONGEST)}\n`);
    expect(await answers()).toEqual([refused(null, /12000 bytes/)]);
  });
});

describe('messages', () => {
  test.each([[{}], [true], [[1]]])('are refused as requests for a progress token %j', async (progressToken) => {
    input.write(`${JSON.stringify(call(3, { name: 'ls', _meta: { progressToken } }))}\n`);
    expect(await answers()).toEqual([refused(3, /params\._meta\.progressToken/, -32_602)]);
    expect(received).toEqual([]);
  });

  test.each([
    [{ arguments: null, cursor: null, _meta: { progressToken: null, other: 1 } }, { _meta: { other: 1 } }],
    [{ _meta: null }, {}],
    [null, undefined],
  ])('treat null parameters as omitted: %j', async (params, taken) => {
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/list', params })}\n`);
    expect(await answers()).toEqual([]);
    expect(received).toEqual([
      { jsonrpc: '2.0', id: 3, method: 'tools/list', ...(taken === undefined ? {} : { params: taken }) },
    ]);
  });

  test.each([
    [
      'initialize',
      { capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      /params\.protocolVersion: expected string, received undefined/,
    ],
    ['tools/call', { arguments: {} }, /params\.name: expected string, received undefined/],
    ['tools/call', { name: 'ls', arguments: '{"path":"a"}' }, /params\.arguments: expected record, received string/],
    ['tools/list', 'all', /at params: expected object, received string/],
  ])('are refused in a sentence for a request %s with wrong parameters', async (method, params, message) => {
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id: 3, method, params })}\n`);
    expect(await answers()).toEqual([refused(3, message, -32_602)]);
  });

  test('are refused if they nest too deeply', async () => {
    const deep = `${'['.repeat(600)}${']'.repeat(600)}`;
    input.write(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ls","arguments":{"deep":${deep}}}}\n`);
    expect(await answers()).toEqual([refused(4, /deeper than 512 levels/)]);
  });

  test('are answered with an error if they are not JSON or not JSON-RPC', async () => {
    input.write('garbage\n{"jsonrpc":"2.0","id":"x","method":"ping"\n17\n{"id":3}\n{"jsonrpc":"2.0","method":5}\n');
    input.write('{"jsonrpc":"2.0","id":null,"method":"ping"}\n{"id":"y","method":"ping"}\n');
    expect(await answers()).toEqual([
      refused(null, /is not JSON: /, -32_700),
      refused(null, /is not JSON: /, -32_700),
      refused(null, /The message is invalid/),
      refused(3, /The message is invalid/),
      refused(null, /The message is invalid at id: expected a string or a number;/),
      refused(null, /The request ping is invalid at id/),
      refused('y', /The request ping is invalid at jsonrpc/),
    ]);
  });

  test('are not answered if they are broken notifications or responses', async () => {
    input.write(
      '{"method":"notifications/initialized"}\n{"jsonrpc":"2.0","result":5}\n{"jsonrpc":"2.0","id":null,"error":{}}\n',
    );
    expect(await answers()).toEqual([]);
    expect(received).toEqual([]);
  });

  test('have a byte order mark skipped', async () => {
    input.write('\ufeff{"jsonrpc":"2.0","id":"bom","method":"ping"}\n\ufeff\n');
    expect(await answers()).toEqual([]);
    expect(received).toEqual([{ jsonrpc: '2.0', id: 'bom', method: 'ping' }]);
  });
});

describe('batches of protocol 2025-03-26', () => {
  test('deliver each message and answer each wrong one', async () => {
    const [ping, notification] = [
      { jsonrpc: '2.0', id: 'b1', method: 'ping' },
      { jsonrpc: '2.0', method: 'notifications/initialized' },
    ];
    input.write(`${JSON.stringify([ping, notification, 17, call('b2', {})])}\n`);
    expect(await answers()).toEqual([refused(null, /invalid/), refused('b2', /params\.name/, -32_602)]);
    expect(received).toEqual([ping, notification]);
  });

  test.each([[0], [101]])('are refused as a whole with %d messages', async (count) => {
    input.write(`${JSON.stringify(Array.from({ length: count }, (_, id) => ({ id })))}\n`);
    expect(await answers()).toEqual([refused(null, new RegExp(`1 to 100 messages, this one ${count};`))]);
    expect(received).toEqual([]);
  });
});

describe('ids beyond the range of a double', () => {
  /** Answers each message by its id, and returns the written lines. */
  async function echoed(...lines: readonly string[]): Promise<readonly string[]> {
    transport.onmessage = (message) => {
      received.push(message);
      const { id, params } = message as { readonly id?: string; readonly params?: { readonly requestId?: unknown } };
      if (id !== 'last') void transport.send({ jsonrpc: '2.0', id: id ?? params?.requestId, result: {} });
    };
    input.write(`${lines.join('\n')}\n{"jsonrpc":"2.0","id":"last","method":"ping"}\n`);
    await new Promise(setImmediate);
    return String(output.read() ?? '')
      .split('\n')
      .filter(Boolean);
  }

  test.each([['1760000000000000001'], ['1.5'], ['-9007199254740993'], ['1e400']])(
    'keep the digits of %s in the answer',
    async (id) => {
      const params = `{"_meta":{"progressToken":${id}},"id":2.5,"text":"\\"id\\":${id}"}`;
      const ping = `{"jsonrpc" : "2.0", "id" : ${id}, "method":"ping","params":${params}}`;
      const answer = `{"jsonrpc":"2.0","id":${id},"result":{}}`;
      expect(await echoed(ping, `[${ping}]`)).toEqual([answer, answer]);
      expect(received[0]).toMatchObject({ params: { id: 2.5, text: `"id":${id}` } });
    },
  );

  test('match the id of a cancellation', async () => {
    const id = '1760000000000000001';
    const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
    expect(await echoed(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`, cancel)).toHaveLength(2);
    const [ping, cancelled] = received as unknown as readonly [
      { readonly id: string },
      { readonly params: { readonly requestId: string } },
    ];
    expect(cancelled.params.requestId).toBe(ping.id);
  });

  test('keep their digits in a refusal', async () => {
    expect(await echoed('{"jsonrpc":"2.0","id":1.5,"method":5}')).toEqual([expect.stringContaining('"id":1.5,')]);
    const long = `{"jsonrpc":"2.0","id":1.5,"method":"ping","params":{"text":"${'x'.repeat(LONGEST)}"}}`;
    expect(await echoed(long)).toEqual([expect.stringContaining('"id":1.5,')]);
  });
});
