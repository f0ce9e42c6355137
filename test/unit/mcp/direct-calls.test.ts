import { describe, expect, test } from '@jest/globals';
import {
  CallToolRequestSchema,
  type CallToolResult,
  isTaskAugmentedRequestParams,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  JSONRPCRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { directCall } from '../../../src/mcp/check-message.js';
import { DirectCalls } from '../../../src/mcp/direct-calls.js';

const call = (params: unknown, more: object = {}): unknown => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params,
  ...more,
});
const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

/** Returns a value as it is read from a line. */
const json = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

const anything = fc.oneof(fc.jsonValue(), fc.constant(undefined));
/** Generates a mostly valid member. */
const mostly = <T>(usual: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 12, arbitrary: usual }, anything);
const absent = fc.constant(undefined);
const id = mostly(fc.oneof(fc.nat(), fc.string()));
const related = fc.constant('io.modelcontextprotocol/related-task');
const meta = fc.oneof(
  fc.record({ progressToken: mostly(fc.oneof(absent, id)), traceparent: fc.string() }),
  fc.dictionary(fc.oneof(fc.string(), related), anything),
);
const params = fc.record({
  name: mostly(fc.string()),
  arguments: mostly(fc.dictionary(fc.oneof({ weight: 9, arbitrary: fc.string() }, fc.constant('__proto__')), anything)),
  _meta: mostly(fc.oneof(absent, meta)),
  task: mostly(absent),
});
const message = fc.record({
  jsonrpc: mostly(fc.constant('2.0')),
  id,
  method: mostly(fc.constant('tools/call')),
  params: mostly(params),
  more: mostly(absent),
});

describe('a call handled outside the SDK', () => {
  test('is one that the SDK would pass on with the same parameters', () => {
    let taken = 0;
    fc.assert(
      fc.property(message, (given) => {
        const received = json(given);
        const direct = directCall(received);
        if (direct === undefined) return;
        taken += 1;
        expect(JSONRPCMessageSchema.parse(received)).toEqual(received);
        expect(JSONRPCRequestSchema.parse(received).id).toBe(direct.id);
        expect(CallToolRequestSchema.parse(received).params).toEqual(direct.params);
        expect(
          isTaskAugmentedRequestParams(received) &&
            (received as { params: { task?: unknown } }).params.task !== undefined,
        ).toBe(false);
      }),
      { numRuns: 3_000 },
    );
    // About a third. A test without such calls would prove nothing.
    expect(taken).toBeGreaterThan(200);
  });

  test('has the form that clients use, with or without a progress token', () => {
    const forms = [
      { name: 'read' },
      { name: 'read', arguments: { path: 'x' } },
      { name: 'read', arguments: {}, _meta: { progressToken: 0, 'claudecode/toolUseId': 'toolu_1' } },
    ];
    for (const form of forms) expect(directCall(call(form))).toEqual({ id: 1, params: form });
  });

  test.each([
    ['a task', call({ name: 'read', task: { ttl: 1 } })],
    [
      'what belongs to a task',
      call({ name: 'read', _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't' } } }),
    ],
    ['arguments in a list', call({ name: 'read', arguments: [] })],
    ['no name', call({ arguments: {} })],
    ['no parameters', call(undefined)],
    ['another member', call({ name: 'read' }, { more: 1 })],
    ['no id that JSON-RPC knows', call({ name: 'read' }, { id: 1.5 })],
    ['another version', call({ name: 'read' }, { jsonrpc: '1.0' })],
    [
      'a member that names a prototype',
      JSON.parse('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"__proto__":{}}}}'),
    ],
    ['a notification', { jsonrpc: '2.0', method: 'tools/call', params: { name: 'read' } }],
    ['nothing at all', null],
  ])('is never one with %s', (_what, given) => {
    expect(directCall(given)).toBeUndefined();
  });
});

describe('running calls', () => {
  /** Calls that end on command, and their answers. */
  function waiting() {
    const sent: JSONRPCMessage[] = [];
    const ends = new Map<
      string,
      { end: (result: CallToolResult) => void; fail: (error: unknown) => void; signal: AbortSignal }
    >();
    const calls = new DirectCalls(
      ({ name }, signal) => new Promise((end, fail) => ends.set(name, { end, fail, signal })),
      async (answer) => void sent.push(answer),
    );
    const begin = (name: string, id: string | number): void =>
      void expect(calls.take(call({ name }, { id }))).toBe(true);
    return { sent, ends, calls, begin };
  }
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  const cancel = (requestId: unknown, reason?: string) => ({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId, reason },
  });

  test('are answered as they end, in any order', async () => {
    const { sent, ends, begin } = waiting();
    begin('first', 1);
    begin('second', 'two');
    ends.get('second')?.end(said('b'));
    await settled();
    ends.get('first')?.end(said('a'));
    await settled();
    expect(sent).toEqual([
      { jsonrpc: '2.0', id: 'two', result: said('b') },
      { jsonrpc: '2.0', id: 1, result: said('a') },
    ]);
  });

  test('are cancelled with the reason and not answered; an ended one is forgotten', async () => {
    const { sent, ends, calls, begin } = waiting();
    begin('first', 0);
    expect(calls.take(cancel(0, 'enough'))).toBe(true);
    expect(ends.get('first')?.signal).toMatchObject({ aborted: true, reason: 'enough' });
    ends.get('first')?.end(said('late'));
    await settled();
    expect(sent).toEqual([]);
    expect(calls.take(cancel(0))).toBe(false);
    expect(calls.take(cancel(undefined))).toBe(false);
    expect(calls.take(cancel('never'))).toBe(false);
  });

  test('fail with the code of the error if it is a number, else with the internal code', async () => {
    const { sent, ends, begin } = waiting();
    begin('coded', 1);
    begin('plain', 2);
    begin('odd', 3);
    ends.get('coded')?.fail(Object.assign(new Error('no such tool'), { code: -32_602 }));
    ends.get('plain')?.fail(Object.assign(new Error('broken'), { code: 'EIO' }));
    ends.get('odd')?.fail('why');
    await settled();
    expect(sent).toEqual([
      { jsonrpc: '2.0', id: 1, error: { code: -32_602, message: 'no such tool' } },
      { jsonrpc: '2.0', id: 2, error: { code: -32_603, message: 'broken' } },
      { jsonrpc: '2.0', id: 3, error: { code: -32_603, message: 'Internal error' } },
    ]);
  });

  test('hand an id that repeats during a call to the later call, as in the SDK', async () => {
    const { sent, ends, calls, begin } = waiting();
    begin('first', 7);
    begin('second', 7);
    ends.get('first')?.end(said('a'));
    await settled();
    expect(calls.take(cancel(7))).toBe(true);
    expect(ends.get('second')?.signal.aborted).toBe(true);
    expect(sent).toEqual([{ jsonrpc: '2.0', id: 7, result: said('a') }]);
  });

  test('are all cancelled when the connection closes', async () => {
    const { sent, ends, calls, begin } = waiting();
    begin('first', 1);
    begin('second', 2);
    calls.close();
    expect([...ends.values()].map(({ signal }) => signal.aborted)).toEqual([true, true]);
    ends.get('first')?.end(said('late'));
    await settled();
    expect(sent).toEqual([]);
  });
});
