import { afterEach, describe, expect, test } from '@jest/globals';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { anthropicStream, responsesStream, stream } from '../../support/scripted-streams.js';
import { until } from '../../support/until.js';

type Json = Readonly<Record<string, unknown>>;

/**
 * The rules that keep an agent's session alive behind a gateway, as far as one that changes nothing
 * can break them. Each test compares the bytes at both ends.
 */
describe('the fifteen rules of a gateway, in observe', () => {
  let gateway: ObservedGateway;
  afterEach(() => gateway.close());

  const PATH = '/anthropic/v1/messages?beta=true';

  /** Sends a body and expects the same bytes at the upstream, and its answer at the client. */
  async function passes(body: string, { path = PATH, headers = [] as readonly string[] } = {}): Promise<void> {
    const text = path === PATH ? anthropicStream('msg_1') : responsesStream('resp_1');
    gateway = await observe((response) => stream(response, text));
    const answer = await gateway.send(path, { headers, body });
    const [received] = gateway.upstream.received;
    expect(received?.body.toString('utf8')).toBe(body);
    expect(received?.headers.slice(0, headers.length / 2)).toEqual(
      headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : [])),
    );
    expect(answer.body.toString('utf8')).toBe(text);
    const [logged] = await until(gateway.logged, ({ length }) => length > 0);
    expect(Buffer.concat(logged?.spans ?? []).toString('utf8')).toBe(body);
  }
  const message = (...content: readonly Json[]): string =>
    JSON.stringify({ model: 'm', messages: [{ role: 'assistant', content }] });

  test('1: beta and version headers, credentials and unknown headers pass; the path decides, not the URL', () =>
    passes('{"messages":[]}', {
      headers: [
        'anthropic-beta',
        'a-2026,b-2026',
        'anthropic-version',
        '2023-06-01',
        'x-api-key',
        'secret',
        'X-Unknown-Of-2027',
        'yes',
      ],
    }));

  test('2: a field of a beta travels with its header, and unknown fields pass', () =>
    passes('{"context_management":{"edits":[]},"thread":{"type":"create"},"field_of_2027":{"a":[1]},"messages":[]}', {
      headers: ['anthropic-beta', 'context-management-2025-06-27'],
    }));

  test('3: bytes are not serialised anew: spaces, escapes, key order, doubled keys, numbers', () =>
    passes('{ "b":1.0,"a" : 1e2, "a":12345678901234567890, "s":"\\u00e9\\/\\ud83d","messages":[ ] }\n'));

  test('4: thinking with its signature stays in place, also with an empty text', () =>
    passes(
      message(
        { type: 'thinking', thinking: '', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'b3BhcXVl' },
        { type: 'text', text: 'so' },
      ),
    ));

  test('5: nothing before a thinking block changes', () =>
    passes(
      '{"tools":[{"name":"b"},{"name":"a"}],"system":"be careful","messages":[{"role":"user","content":"q"},' +
        '{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"}]}]}',
    ));

  test('6: calls and results go together, even if the client sends them in another order', () =>
    passes(
      JSON.stringify({
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'Read', input: {} }] },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'and' },
              { type: 'tool_result', tool_use_id: 't1' },
            ],
          },
        ],
      }),
    ));

  test('7: server tools, tool references and compaction blocks are opaque', () =>
    passes(
      message(
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
        { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ encrypted_content: 'eA==' }] },
        { type: 'tool_reference', tool_name: 'x' },
        { type: 'compaction', content: 'b3BhcXVl' },
      ),
    ));

  test('8: the marks of the client’s cache stay', () =>
    passes(
      message(
        { type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } },
        { type: 'text', text: 'b', cache_control: { type: 'ephemeral' } },
      ),
    ));

  test('9: a request that is sent again goes out with the same bytes', async () => {
    await passes('{"messages":[{"role":"user","content":"once"}]}');
    await gateway.send(PATH, { body: '{"messages":[{"role":"user","content":"once"}]}' });
    const [first, second] = gateway.upstream.received;
    expect(second?.body).toEqual(first?.body);
  });

  test('10: the blocks of the prompt and system messages stay where they are', () =>
    passes(
      '{"system":[{"type":"text","text":"x-anthropic-billing-header: v=1"},{"type":"text","text":"p"}],' +
        '"messages":[{"role":"user","content":"q"},{"role":"system","content":"hook"}]}',
    ));

  test('11: tools keep their order and content', () =>
    passes('{"tools":[{"name":"z","defer_loading":true},{"name":"a"},{"type":"web_search_20250305"}],"messages":[]}'));

  test('12: a count of tokens is the provider’s own, and so is its refusal', async () => {
    gateway = await observe((response) => response.writeHead(404).end('{"type":"error"}'));
    const answer = await gateway.send('/anthropic/v1/messages/count_tokens', { body: '{"messages":[]}' });
    expect([answer.start, answer.body.toString()]).toEqual(['404 Not Found', '{"type":"error"}']);
  });

  test('13: events pass whole and in order, with their names, comments and pings', async () => {
    const text = `: comment\n\nevent: ping\ndata: {"type":"ping"}\n\n${anthropicStream('msg_1')}`;
    gateway = await observe((response) => stream(response, text, 5));
    expect((await gateway.send(PATH, { body: '{"messages":[]}' })).body.toString('utf8')).toBe(text);
  });

  test('14: an error passes with its wording, status and retry-after', async () => {
    const error = '{"type":"error","error":{"type":"invalid_request_error","message":"cannot be modified"}}';
    gateway = await observe((response) => response.writeHead(400, { 'retry-after': '9' }).end(error));
    const answer = await gateway.send(PATH, { body: '{"messages":[]}' });
    expect([answer.start, answer.body.toString()]).toEqual(['400 Bad Request', error]);
    expect(answer.headers).toContain('retry-after: 9');
  });

  test('15: items of the Responses API keep their ids, pairs and encrypted content', () =>
    passes(
      JSON.stringify({
        prompt_cache_key: 'thread-1',
        store: false,
        include: ['reasoning.encrypted_content'],
        input: [
          { type: 'additional_tools', tools: [] },
          { type: 'compaction', id: 'cmp_1', encrypted_content: 'b3BhcXVl' },
          { type: 'reasoning', id: 'rs_1', encrypted_content: 'eA==', summary: [] },
          { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'shell', arguments: '{}' },
          { type: 'function_call_output', id: 'fco_1', call_id: 'call_1', output: 'done' },
          { type: 'compaction_trigger' },
        ],
      }),
      { path: '/codex/responses' },
    ));

  test('new protocol: a thread that continues passes and is marked, so that it never counts as whole', async () => {
    await passes('{"thread":{"type":"continue","previous_message_id":"msg_0"},"messages":[]}');
    await gateway.send(PATH, { body: '{"thread":{"type":"continue","previous_message_id":"msg_0"},"messages":[]}' });
    const [logged] = await until(gateway.logged, ({ length }) => length > 0);
    expect(logged?.thread).toEqual({ type: 'continue', previous: 'msg_0' });
  });

  test('new protocol: a request for a compaction is distinguished from a turn', async () => {
    gateway = await observe((response) => stream(response, responsesStream('resp_1')));
    const input = [{ type: 'message', role: 'user', content: 'q' }, { type: 'compaction_trigger' }];
    await gateway.send('/codex/responses', {
      headers: ['thread-id', 't-1'],
      body: JSON.stringify({ input, tools: [] }),
    });
    const [logged] = await until(gateway.logged, ({ length }) => length > 0);
    expect(logged).toMatchObject({ side: 'summary', compaction: 'asked', session: { agent: 'codex', native: 't-1' } });
  });
});
