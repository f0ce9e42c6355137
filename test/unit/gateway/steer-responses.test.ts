import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { composed } from '../../../src/extensions/sidecar/composed-list.js';
import { noItemsSeen, responsesRequest } from '../../../src/gateway/steer/responses-request.js';
import type { SteerableRequest } from '../../../src/gateway/steer/wire-request.js';
import { sessionId } from '../../../src/objects/ids.js';
import { effort } from '../../support/effort.js';

type Json = Readonly<Record<string, unknown>>;

const said = (role: string, text: string): Json => ({ type: 'message', role, content: [{ type: 'input_text', text }] });
const reasoning = (n: number): Json => ({
  type: 'reasoning',
  id: `rs_${n}`,
  summary: [],
  encrypted_content: `c2ln${n}`,
});
const call = (id: string): Json => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name: 'exec',
  arguments: '{"a":1}',
});
const output = (id: string): Json => ({
  type: 'function_call_output',
  id: `fco_${id}`,
  call_id: id,
  output: `content of ${id}`,
});

/** A closed turn and a running one, behind the prompt and what Codex adds to it. */
const HEAD: readonly Json[] = [
  said('developer', 'You are an agent.'),
  said('user', '<environment_context>\n</environment_context>'),
];
const REST: readonly Json[] = [
  said('user', 'first question'),
  reasoning(1),
  call('a'),
  call('b'),
  output('a'),
  said('developer', 'a note of a hook'),
  output('b'),
  reasoning(2),
  { ...said('assistant', ''), content: [{ type: 'output_text', text: 'first answer' }] },
  said('user', 'second question'),
  reasoning(3),
  { type: 'custom_tool_call', id: 'ctc_c', call_id: 'c', name: 'apply_patch', input: '*** patch' },
  { type: 'custom_tool_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'done' }] },
];
const bodyOf = (input: readonly Json[], more: Json = {}): string =>
  `{ "model":"gpt-test", "input" : [ ${input.map((one) => JSON.stringify(one)).join(' , ')} ] ,` +
  `"tools":[{"name":"exec"}],` +
  `"n":1.0e3,${JSON.stringify({ ...more, store: false }).slice(1)}\n`;
const read = (body: string) => responsesRequest(body, JSON.parse(body), { session: 's-1', seen: noItemsSeen() });
const request = (body: string): SteerableRequest => {
  const made = read(body);
  if ('why' in made) throw new Error(made.why);
  return made;
};

/** Returns the body whose closed turns from a reported message on are one text. */
function steered({ list, write }: SteerableRequest, from: number): string {
  const message = (text: string) => ({ section: 'chat', role: 'user', parts: [{ text }] }) as const;
  const result = list.list.messages.findIndex(({ role }, i) => i > from && role === 'tool');
  return write(
    composed(list, {
      session: sessionId('s-1'),
      from,
      before: [message('the earlier turns')],
      inserts: [{ index: list.list.messages.length - 1, message: message('a note') }],
      after: [],
      references: result < 0 ? [] : [{ index: result, text: 'a line for the result' }],
      pool: 1,
      active: 0,
    }),
  );
}

/** Returns the calls without a result, and the results without a call. */
function unpaired(input: readonly Json[]): readonly unknown[] {
  const ids = (end: string) => input.flatMap(({ type, call_id: id }) => (String(type).endsWith(end) ? [id] : []));
  const [calls, results] = [ids('_call'), ids('_call_output')];
  return [...calls.filter((id) => !results.includes(id)), ...results.filter((id) => !calls.includes(id))];
}

/** Whether each call has a later result, and no message of the user between them. */
function isInOrder(input: readonly Json[]): boolean {
  const open = new Set<unknown>();
  const inOrder = input.every(({ type, role, call_id: id }) => {
    if (String(type).endsWith('_call')) open.add(id);
    if (String(type).endsWith('_call_output')) return open.delete(id);
    return role === undefined || role === 'developer' || open.size === 0;
  });
  return inOrder && open.size === 0;
}

/** Whether an item is a part of an answer, so that reasoning before it must stay with it. */
const isOfAnswer = ({ type, role }: Json): boolean =>
  type === 'reasoning' || /_call$/.test(String(type)) || (type === 'message' && role === 'assistant');

describe('a request of the Responses wire that is steered', () => {
  test('is the client’s own bytes with the client’s own list', () => {
    const { list, write } = request(bodyOf([...HEAD, ...REST]));
    expect(write(list.messages)).toBe(bodyOf([...HEAD, ...REST]));
  });

  test('reports an answer as one message, and what the client adds apart from the user’s words', () => {
    const { list } = request(bodyOf([...HEAD, ...REST, said('user', '<turn_aborted>\nx</turn_aborted>')]));
    expect(list.list.system).toBe('You are an agent.');
    expect(list.list.messages).toEqual([
      { role: 'user', content: 'first question' },
      {
        role: 'assistant',
        content: null,
        tool_calls: ['a', 'b'].map((id) => ({ id, name: 'exec', arguments: '{"a":1}' })),
      },
      { role: 'tool', tool_call_id: 'a', content: 'content of a' },
      { role: 'system', content: 'a note of a hook' },
      { role: 'tool', tool_call_id: 'b', content: 'content of b' },
      { role: 'assistant', content: 'first answer' },
      { role: 'user', content: 'second question' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', name: 'apply_patch', arguments: '*** patch' }] },
      { role: 'tool', tool_call_id: 'c', content: 'done' },
      { role: 'system', content: '<turn_aborted>\nx</turn_aborted>' },
    ]);
  });

  test('keeps the prompt, the client’s added texts, and the answer that begins the rest, byte for byte', () => {
    const body = steered(request(bodyOf([...HEAD, ...REST])), 5);
    const { input } = JSON.parse(body) as { readonly input: readonly Json[] };
    expect(input.slice(0, 2)).toEqual(HEAD);
    expect(input[2]).toMatchObject({
      role: 'user',
      content: expect.arrayContaining([{ type: 'input_text', text: 'the earlier turns' }]),
    });
    expect(input.slice(3, 7)).toEqual(REST.slice(7, 11));
    expect(input.at(-2)).toEqual({ ...REST.at(-1), output: 'a line for the result' });
    expect(body.replace(/"input" : \[.*\] ,"tools"/s, '')).toBe(bodyOf([]).replace(/"input" : \[.*\] ,"tools"/s, ''));
  });

  test('keeps the client’s list after a compaction by the provider, and passes without the whole list', () => {
    const compacted = [...HEAD, REST[0] as Json, { type: 'compaction', encrypted_content: 'eA==' }, ...REST.slice(9)];
    expect(request(bodyOf(compacted))).toMatchObject({
      left: 'the provider compacted the conversation',
      list: { list: { compacted: true } },
    });
    expect(read(bodyOf(REST, { previous_response_id: 'resp_1' }))).toHaveProperty('why');
    expect(read(bodyOf(REST, { conversation: { id: 'conv_1' } }))).toHaveProperty('why');
    expect(read(bodyOf([...REST, { type: 'additional_tools', tools: [] }]))).toHaveProperty('why');
    expect(read('{"input":"a text"}')).toHaveProperty('why');
  });

  test('never fails, never separates reasoning from its item, and keeps pairs, for mutated inputs', () => {
    const one = fc.record({
      kind: fc.constantFrom('drop', 'again', 'swap', 'value'),
      at: fc.nat(20),
      value: fc.jsonValue(),
    });
    let changed = 0;
    fc.assert(
      fc.property(fc.array(one, { maxLength: 4 }), fc.nat(12), (mutations, from) => {
        const input = mutations.reduce((items: readonly unknown[], { kind, at, value }) => {
          const place = at % Math.max(1, items.length);
          if (kind === 'drop') return items.toSpliced(place, 1);
          if (kind === 'again') return items.toSpliced(place, 0, items[place]);
          return kind === 'swap' ? [...items.slice(place), ...items.slice(0, place)] : items.toSpliced(place, 1, value);
        }, REST) as readonly Json[];
        const body = bodyOf(input);
        const made = read(body);
        if ('why' in made) return;
        const { messages } = made.list.list;
        if (messages[from]?.role !== 'user' && messages[from]?.role !== 'assistant') return;
        changed += 1;
        const sent = (JSON.parse(steered(made, from)) as { readonly input: readonly Json[] }).input;
        const followers = (of: readonly Json[], item: Json): readonly string[] =>
          of.flatMap((one, at) => {
            const next = of[at + 1];
            const isHeld = JSON.stringify(one) === JSON.stringify(item) && next !== undefined && isOfAnswer(next);
            return isHeld ? [JSON.stringify(next)] : [];
          });
        const before = input.filter(({ type }) => type === 'reasoning');
        for (const item of sent.filter(({ type }) => type === 'reasoning')) {
          const kept = followers(sent, item);
          const count = sent.filter((other) => JSON.stringify(other) === JSON.stringify(item)).length;
          const most = before.filter((other) => JSON.stringify(other) === JSON.stringify(item)).length;
          // Each reasoning that stays is still followed by the same item.
          if (count === most) expect(kept).toEqual(followers(input, item));
        }
        // A cut at a border separates a call only from a result that already came before it.
        if (unpaired(input).length === 0 && isInOrder(input)) expect(unpaired(sent)).toEqual([]);
      }),
      { numRuns: effort(300, 20_000) },
    );
    expect(changed).toBeGreaterThan(30);
  });
});
