import { afterEach, describe, expect, test } from '@jest/globals';
import type { SentRequest } from '../../../src/gateway/read-log.js';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { anthropicStream, responsesStream, stream } from '../../support/scripted-streams.js';
import { until } from '../../support/until.js';

type Json = Readonly<Record<string, unknown>>;

let gateway: ObservedGateway;
afterEach(() => gateway.close());

const MESSAGES = '/anthropic/v1/messages';
const RESPONSES = '/openai/v1/responses';
const user = (content: string): Json => ({ role: 'user', content });

/** Sends requests one after another and returns them as logged. */
async function exchange(path: string, bodies: readonly Json[], all: SentRequest[] = []): Promise<SentRequest[]> {
  for (const body of bodies) {
    const before = all.length;
    await gateway.send(path, { body: JSON.stringify(body) });
    await until(
      async () => {
        all.push(...(await gateway.logged()));
        return all;
      },
      ({ length }) => length > before,
    );
  }
  return all;
}

const json = (spans: readonly Buffer[] | undefined): unknown =>
  spans === undefined ? undefined : JSON.parse(Buffer.concat(spans).toString('utf8'));

/** Answers each request with the next of some streams. */
const answering = async (streamOf: (nth: number) => string): Promise<void> => {
  let nth = 0;
  gateway = await observe((response) => {
    nth += 1;
    return stream(response, streamOf(nth));
  });
};

/** The blocks of `anthropicStream`, as a client would send them back. */
const BLOCKS = [
  { type: 'thinking', thinking: 'Grüße ☕', signature: 'c2lnbmVk' },
  { type: 'text', text: 'I read the file.' },
  { type: 'tool_use', id: 'toolu_7', name: 'Read', input: { path: 'a' } },
];
const create = {
  model: 'm',
  thread: { type: 'create' },
  system: 'Be careful.',
  tools: [{ name: 'Read' }],
  messages: [user('look')],
};
const go = (previous: string, said: string): Json => ({
  model: 'm',
  thread: { type: 'continue', previous_message_id: previous },
  messages: [user(said)],
});

describe('a message thread', () => {
  test('passes as it is, and is rebuilt from the requests and answers before it', async () => {
    await answering((nth) => anthropicStream(`msg_${nth}`));
    const sent = await exchange(MESSAGES, [create, go('msg_1', 'on'), go('msg_2', 'and on')]);
    expect(gateway.upstream.received.map(({ body }) => JSON.parse(body.toString('utf8')) as unknown)).toEqual(
      sent.map(({ spans }) => json(spans)),
    );
    expect(sent.map(({ rebuilt }) => rebuilt?.from)).toEqual([undefined, 1, 2]);
    const assistant = { role: 'assistant', content: BLOCKS };
    expect(json(sent[2]?.rebuilt?.spans)).toEqual({
      ...create,
      ...go('msg_2', 'and on'),
      messages: [user('look'), assistant, user('on'), assistant, user('and on')],
    });
  });

  test.each([
    [
      'was cut off',
      anthropicStream('msg_1').replace('event: message_stop', 'event: x').replace('"message_stop"', '""'),
    ],
    ['changed in an unknown way', anthropicStream('msg_1').replace('"signature_delta"', '"new_delta"')],
    ['is another one', anthropicStream('msg_9')],
  ])('is not rebuilt if the answer before it %s', async (_, text) => {
    await answering((nth) => (nth === 1 ? text : anthropicStream(`msg_${nth}`)));
    const [, second] = await exchange(MESSAGES, [create, go('msg_1', 'on')]);
    expect(second?.thread).toEqual({ type: 'continue', previous: 'msg_1' });
    expect(second?.rebuilt).toBeUndefined();
  });

  test('keeps the provider’s own compaction as an opaque block in its place', async () => {
    const block = { type: 'compaction', content: null };
    const delta = { type: 'compaction_delta', content: 'the summary' };
    const events = [
      { type: 'message_start', message: { id: 'msg_1', content: [] } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, context_management: { applied_edits: [] } },
      { type: 'message_stop' },
    ];
    const compacted = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    await answering((nth) => (nth === 1 ? compacted : anthropicStream(`msg_${nth}`)));
    const [first, second] = await exchange(MESSAGES, [create, go('msg_1', 'on')]);
    expect(first?.answer).toMatchObject({ blocks: ['compaction'], verdicts: { context_management: {} } });
    const whole = json(second?.rebuilt?.spans) as { readonly messages: readonly Json[] };
    expect(whole.messages[1]).toEqual({
      role: 'assistant',
      content: [{ type: 'compaction', content: 'the summary' }],
    });
  });

  test('keeps no answer of a request without a thread', async () => {
    await answering((nth) => anthropicStream(`msg_${nth}`));
    const [, second] = await exchange(MESSAGES, [{ ...create, thread: undefined }, go('msg_1', 'on')]);
    expect(second?.rebuilt).toBeUndefined();
  });
});

describe('a response that continues another', () => {
  const item = (said: string): Json => ({ type: 'message', role: 'user', content: said });
  const ITEMS = [
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'b3BhcXVl' },
    { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'shell', arguments: '{}' },
  ];

  test('is rebuilt from the inputs and items before it, with its own instructions', async () => {
    await answering((nth) => responsesStream(`resp_${nth}`));
    const output = { type: 'function_call_output', call_id: 'call_1', output: 'done' };
    const sent = await exchange(RESPONSES, [
      { model: 'm', instructions: 'first', input: 'look' },
      { model: 'm', previous_response_id: 'resp_1', instructions: 'second', input: [output] },
    ]);
    expect(sent[1]?.rebuilt?.from).toBe(1);
    expect(json(sent[1]?.rebuilt?.spans)).toEqual({
      model: 'm',
      previous_response_id: 'resp_1',
      instructions: 'second',
      input: [item('look'), ...ITEMS, output],
    });
  });

  test('is not rebuilt if the provider stored nothing, or holds a conversation', async () => {
    await answering((nth) => responsesStream(`resp_${nth}`));
    const sent = await exchange(RESPONSES, [
      { store: false, input: 'look' },
      { previous_response_id: 'resp_1', input: 'on' },
      { conversation: { id: 'conv_1' }, input: 'look' },
      { previous_response_id: 'resp_3', input: 'on' },
    ]);
    expect(sent.map(({ rebuilt }) => rebuilt)).toEqual([undefined, undefined, undefined, undefined]);
    expect(sent[2]?.conversation).toBe('conv_1');
  });
});
