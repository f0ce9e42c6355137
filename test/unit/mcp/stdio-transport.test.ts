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

/** What was answered once everything has been read. */
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
const refused = (id: unknown, message: RegExp) => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32_600, message: expect.stringMatching(message) as unknown },
});

describe('lines', () => {
  test('messages are read in any pieces, blank lines are nothing', async () => {
    const messages = [call(1, { name: 'ls', arguments: { path: 'ä€😀' } }), call('two', {})];
    const bytes = Buffer.from(`\n${messages.map((message) => JSON.stringify(message)).join('\r\n\n')}\n`);
    for (let at = 0; at < bytes.length; at += 3) input.write(bytes.subarray(at, at + 3));
    expect(await answers()).toEqual([]);
    expect(received).toEqual(messages);
  });

  test.each([
    ['at its end', (text: string) => `{"method":"tools/call","params":{"arguments":{"content":"${text}"}},"jsonrpc":"2.0","id":7}`],
    ['at its start', (text: string) => `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"content":"${text}"}}}`],
  ])('one that is too long is answered by its id %s, and the next is read', async (_where, line) => {
    input.write(`${line(String.raw`,\"id\":5}`.repeat(2_000))}\n`);
    expect(await answers()).toEqual([refused(7, /over the limit of 4000/)]);
  });

  test('one without an id that can be found is answered to nobody by name', async () => {
    input.write(`${'x'.repeat(3 * LONGEST)}\n`);
    expect(await answers()).toEqual([refused(null, /12000 bytes/)]);
  });
});

describe('messages', () => {
  test.each([[{}], [1.5], [null], [[1]]])('a progress token %j is refused to its request', async (progressToken) => {
    input.write(`${JSON.stringify(call(3, { name: 'ls', _meta: { progressToken } }))}\n`);
    expect(await answers()).toEqual([refused(3, /params\._meta\.progressToken/)]);
    expect(received).toEqual([]);
  });

  test('a request that nests too deep is refused', async () => {
    const deep = `${'['.repeat(600)}${']'.repeat(600)}`;
    input.write(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ls","arguments":{"deep":${deep}}}}\n`);
    expect(await answers()).toEqual([refused(4, /deeper than 512 levels/)]);
  });

  test('what is taken directly goes no further; what nests too deep is not even offered', async () => {
    const offered: unknown[] = [];
    transport.direct = {
      take: (message) => {
        offered.push(message);
        return (message as { readonly id?: unknown }).id === 1;
      },
    };
    const [taken, left] = [call(1, { name: 'ls' }), call(2, { name: 'ls' })];
    const deep = `${'['.repeat(600)}${']'.repeat(600)}`;
    input.write(`${JSON.stringify(taken)}\n${JSON.stringify(left)}\n{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${deep}}\n`);
    expect(await answers()).toEqual([refused(1, /deeper than 512 levels/)]);
    expect(offered.slice(0, 2)).toEqual([taken, left]);
    expect(offered).toHaveLength(3);
    expect(received).toEqual([left]);
  });

  test('what is no request is passed over', async () => {
    input.write('garbage\n17\n{"id":3}\n{"jsonrpc":"2.0","method":5}\n');
    expect(await answers()).toEqual([]);
  });
});
