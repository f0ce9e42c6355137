import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LoopContext } from '../../../src/extensions/loop/loop-context.js';
import { LoopGuard } from '../../../src/extensions/sidecar/loop-guard.js';
import type { WholeList } from '../../../src/extensions/sidecar/sidecar-process.js';
import { TroubleFile } from '../../../src/extensions/sidecar/trouble-file.js';
import { anthropicRequest, nothingSeen } from '../../../src/gateway/steer/anthropic-request.js';
import { listPlaces, memberPlaces, textAt } from '../../../src/gateway/steer/json-places.js';
import { type Outgoing, type Refused, Steering } from '../../../src/gateway/steer/steering.js';
import type { SteerableRequest } from '../../../src/gateway/steer/wire-request.js';
import { setSteered } from '../../../src/host/steered-sessions.js';
import { sessionId } from '../../../src/objects/ids.js';
import { pairFault } from '../../agents/wire-checks.js';
import { damage, damaged } from '../../support/damage.js';
import { effort } from '../../support/effort.js';
import type { ThinkingMessage } from '../../support/prefix-check.js';

type Json = Readonly<Record<string, unknown>>;

interface WholeBody {
  readonly messages: readonly ThinkingMessage[];
}

interface Mutation {
  readonly kind: string;
  readonly at: number;
  readonly value: unknown;
}

const mark = { cache_control: { type: 'ephemeral' } };
const text = (words: string): Json => ({ type: 'text', text: words });
const call = (id: string): Json => ({ type: 'tool_use', id, name: 'Read', input: { file_path: `/p/${id}` } });
const result = (id: string): Json => ({ type: 'tool_result', tool_use_id: id, content: `content of ${id}` });
const thought = (n: number): Json => ({ type: 'thinking', thinking: `thought ${n}`, signature: `c2ln${n}=` });

/** A conversation of closed turns and a running one, with spaces and escapes that must stay. */
const TURNS: readonly Json[] = [
  { role: 'user', content: [text('<system-reminder>\nbe brief\n</system-reminder>'), text('first question')] },
  { role: 'assistant', content: [thought(1), call('a'), call('b')] },
  { role: 'user', content: [result('a'), { ...result('b'), is_error: true }, text('a note of the harness')] },
  { role: 'assistant', content: [thought(2), text('first answer')] },
  { role: 'user', content: 'second question' },
  { role: 'assistant', content: [thought(3), { type: 'redacted_thinking', data: 'b3BhcXVl' }, call('c')] },
  { role: 'user', content: [{ ...result('c'), ...mark }] },
];
const bodyOf = (messages: readonly Json[], more: Json = {}): string =>
  `{ "model":"claude-test", "system":[{"type":"text","text":"x-anthropic-billing-header: 7"},` +
  `{"type":"text","text":"p"}],` +
  `"max_tokens":1.0e3, "messages" : [ ${messages.map((one) => JSON.stringify(one)).join(' , ')} ] ,` +
  `"tools":[{"name":"Read"}],"metadata":{"user_id":"{\\"session_id\\":\\"s-1\\"}"},` +
  `${JSON.stringify({ ...more, end: 1 }).slice(1)}\n`;
const BODY = bodyOf(TURNS, { x: 'a/b' });

const request = (body: string): SteerableRequest => {
  const made = anthropicRequest(body, JSON.parse(body), { session: 's-1', seen: nothingSeen() });
  if ('why' in made) throw new Error(made.why);
  return made;
};

/** Returns a sidecar's answer: the closed turns as one text, and a line for a result. */
function contextOf({ session, messages }: WholeList): LoopContext | null {
  const from = messages.findLastIndex(({ role }) => role === 'user');
  if (from < 0) return null;
  const read = messages.findIndex(({ role }, i) => i > from && role === 'tool');
  return {
    session: sessionId(session),
    from,
    before: from === 0 ? [] : [{ section: 'chat', role: 'user', parts: [{ text: 'the earlier turns' }] }],
    inserts: [{ index: messages.length - 1, message: { section: 'pool', role: 'user', parts: [{ text: 'a note' }] } }],
    after: [],
    references: read < 0 ? [] : [{ index: read, text: 'a line for the result' }],
    pool: 1,
    active: 0,
  };
}

describe('a request of Anthropic’s wire that is steered', () => {
  test('is the client’s own bytes with the client’s own list', () => {
    const { list, write } = request(BODY);
    expect(write(list.messages)).toBe(BODY);
  });

  test('reports results before text, the user’s text apart from reminders, and no thinking', () => {
    const { list } = request(BODY);
    expect(list.list.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'first question'],
      ['system', '<system-reminder>\nbe brief\n</system-reminder>'],
      ['assistant', [call('a'), call('b')]],
      ['tool', 'content of a'],
      ['tool', 'content of b'],
      ['system', 'a note of the harness'],
      ['assistant', [text('first answer')]],
      ['user', 'second question'],
      ['assistant', [call('c')]],
      ['tool', 'content of c'],
    ]);
    expect(list.list.system).toBe('p');
    expect(list.places).toEqual([0, 0, 1, 2, 2, 2, 3, 4, 5, 6]);
  });

  test('gives the same list for moved cache marks and for a text in place of one block', () => {
    const seen = nothingSeen();
    const made = (body: string) => anthropicRequest(body, JSON.parse(body), { session: 's-1', seen });
    const [first, second] = [
      made(BODY),
      made(
        BODY.replace('"content":"second question"', '"content":[{"type":"text","text":"second question"}]')
          .replace(JSON.stringify(mark).slice(1, -1), '"is_error":false')
          .replace(',"is_error":false}]', '}]'),
      ),
    ] as SteerableRequest[];
    expect(second?.list.list.messages.every((message, i) => message === first?.list.list.messages[i])).toBe(true);
  });

  test('leaves out the thinking that the client kept from before its own summary, and no other', () => {
    const summary = 'This session is being continued from a previous conversation that ran out of context.';
    const list = [
      { role: 'user', content: summary },
      { role: 'system', content: [] },
      { role: 'assistant', content: [thought(1), text('the last answer')] },
      { role: 'user', content: '<system-reminder>\nread again\n</system-reminder>' },
      { role: 'user', content: [text('<system-reminder>x</system-reminder>'), text('go on')] },
      { role: 'assistant', content: [thought(2), call('a')] },
      { role: 'user', content: [result('a')] },
    ];
    const { list: made, write } = request(bodyOf(list));
    const { messages } = JSON.parse(write(made.messages)) as WholeBody;
    expect(messages).toEqual(list.with(2, { role: 'assistant', content: [text('the last answer')] }));
  });

  test('is left to the client if the provider compacted it, and passes if its form is unknown', () => {
    const why = (messages: readonly Json[]) => {
      const body = bodyOf(messages);
      return anthropicRequest(body, JSON.parse(body), { session: 's-1', seen: nothingSeen() });
    };
    expect(why([{ role: 'assistant', content: [{ type: 'compaction', content: 'eA==' }] }])).toHaveProperty(
      'left',
      'the provider compacted the conversation',
    );
    expect(why([{ role: 'user', content: [] }])).toHaveProperty('why');
    expect(why([{ role: 'tool', content: 'x' }])).toHaveProperty('why');
  });

  test('keeps the cache mark of a result that becomes a line, or else marks our last message', () => {
    const { list, write } = request(BODY);
    const [last] = list.messages.slice(-1);
    if (last === undefined) throw new Error('no message');
    const line = list.withReferences(last, new Map([[9, 'a line']]));
    expect(write([list.said({ section: 'chat', role: 'user', parts: [{ text: 'us' }] }, 'chat'), line])).toContain(
      '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a line"}],' +
        '"cache_control":{"type":"ephemeral"}}]}',
    );
    expect(write([list.said({ section: 'active', role: 'user', parts: [{ text: 'us' }] }, 'active')])).toContain(
      '[{"role":"user","content":[{"type":"text","text":"us","cache_control":{"type":"ephemeral"}}]}]',
    );
  });
});

test('places of a JSON text are those of its values', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom('', ' ', '\n\t'), (values, space) => {
      const list = `[${space}${values.map((value) => JSON.stringify(value)).join(`${space},${space}`)}${space}]`;
      const places = listPlaces(list, 0).map((place) => JSON.parse(textAt(list, place)) as unknown);
      expect(places).toEqual(JSON.parse(list));
      const object = `{"a"${space}:${space}{"b":[${space}]}${space},${space}"b":${list}${space}}`;
      const place = memberPlaces(object, 0).get('b');
      expect(place === undefined ? undefined : textAt(object, place)).toBe(list);
      expect(memberPlaces(`${object.slice(0, -1)},"b":1}`, 0).has('b')).toBe(false);
    }),
  );
});

describe('steering', () => {
  let dataDir: string;
  let steering: Steering;
  const sent: Json[] = [];
  const expected: unknown[] = [];
  const prepared: Buffer[] = [];
  let open: (control: number) => Steering;
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-steering-'));
    sent.length = 0;
    expected.length = 0;
    prepared.length = 0;
    const sidecar = {
      call: async (call: string, params: unknown) => {
        if (call === 'sent') sent.push(params as Json);
        if (call === 'expect') expected.push(params);
        // The record is being stored until the log is prepared for the body.
        if (call === 'handed') while (prepared.length === 0) await nextTurn();
        if (call === 'sent') return { kept: true };
        return call === 'handed' ? { kept: true, at: { step: 3, turn: 1 } } : null;
      },
      callWithList: async (call: string, list: WholeList) => (call === 'context' ? contextOf(list) : null),
      end: async () => undefined,
    } as unknown as ConstructorParameters<typeof LoopGuard>[0]['sidecar'];
    open = (control) =>
      new Steering({
        dataDir,
        control,
        limitMs: 5_000,
        firstLimitMs: 5_000,
        prepare: (body) => void prepared.push(body),
        guard: (onBypass) =>
          new LoopGuard({
            sidecar,
            trouble: new TroubleFile(dataDir, 'gateway'),
            limitMs: 5_000,
            notify: () => undefined,
            onBypass,
          }),
      });
    steering = open(0);
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  const outgoing = (body: string | Buffer, headers: Readonly<Record<string, string>> = {}) =>
    steering.outgoing({ wire: 'anthropic', path: '/v1/messages', headers }, Buffer.from(body));
  const isSent = (made: Outgoing | Refused): made is Outgoing => 'body' in made;
  const textOf = (made: Outgoing | Refused): string => (isSent(made) ? made.body.toString('utf8') : made.text);

  test('replaces closed turns, keeps the bytes of the running one, and records the body that went out', async () => {
    const made = await outgoing(BODY);
    const out = textOf(made);
    expect(prepared).toHaveLength(1);
    expect(isSent(made) && made.body === prepared[0]).toBe(true);
    const [head, tail] = [BODY.slice(0, BODY.indexOf('[ {"role"')), BODY.slice(BODY.indexOf(' ,"tools"'))];
    expect(out.startsWith(head)).toBe(true);
    expect(out.endsWith(tail)).toBe(true);
    const { messages } = JSON.parse(out) as { readonly messages: readonly ThinkingMessage[] };
    expect(messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'user', 'user']);
    expect(out).toContain(JSON.stringify(TURNS[5]));
    expect(out).not.toContain('thought 2');
    expect(pairFault(messages)).toBeUndefined();
    if (!isSent(made)) throw new Error('refused');
    expect(made.steer).toMatchObject({ arm: 'steered', how: 'steered', bytes: Buffer.byteLength(BODY) });
    made.answered?.({ status: 200, id: 'msg_1', calls: ['toolu_9'] });
    expect((sent[0] as { readonly body: readonly string[] }).body.join('')).toBe(out);
    expect(sent[0]).toMatchObject({ session: 's-1', step: 3, turn: 1, sent: { wire: 'anthropic', answer: 'msg_1' } });
    expect(steering.sessionOfCall('toolu_9')).toBe('s-1');
    // The call is announced, so that its id is looked up while the agent runs it.
    expect(expected).toEqual([{ session: 's-1', callId: 'toolu_9' }]);
  });

  test('leaves sub-agents, other wires, quota checks and sessions without an id alone', async () => {
    const bare = BODY.replace('\\"session_id\\":\\"s-1\\"', '');
    for (const made of [
      await outgoing(BODY, { 'x-claude-code-session-id': 's-1', 'x-claude-code-agent-id': 'sub' }),
      await steering.outgoing({ wire: 'chat', path: '/v1/chat/completions', headers: {} }, Buffer.from(BODY)),
      await outgoing(bare),
    ])
      expect(isSent(made) ? [made.steer, made.body.toString('utf8')] : made).toEqual([
        undefined,
        textOf(made) === bare ? bare : BODY,
      ]);
    const quota = BODY.replace('"max_tokens":1.0e3', '"max_tokens":1');
    expect(textOf(await outgoing(quota))).toBe(quota);
  });

  test('sends a summary behind the last steered list, and without bound thinking if that list changed', async () => {
    await outgoing(BODY);
    const ask = { role: 'user', content: 'CRITICAL: Respond with TEXT ONLY. Summarise.' };
    const answer = { role: 'assistant', content: [thought(4), text('second answer')] };
    const summary = textOf(await outgoing(bodyOf([...TURNS, answer, ask])));
    expect(summary).toContain('the earlier turns');
    expect(summary).toContain('thought 4');
    const other = textOf(
      await outgoing(bodyOf([{ role: 'user', content: 'changed' }, ...TURNS.slice(1), answer, ask])),
    );
    expect(other).not.toContain('the earlier turns');
    expect(other).not.toContain('thought');
  });

  test('leaves the share of the control arm unchanged, and assigns sessions alike in every process', async () => {
    const arms = async (): Promise<readonly (string | undefined)[]> => {
      steering = open(0.25);
      const made = [];
      for (let i = 0; i < 60; i += 1) made.push(await outgoing(BODY.replace('s-1', `s-${i}`)));
      return made.map((one) => (isSent(one) ? one.steer?.arm : 'refused'));
    };
    const first = await arms();
    const control = first.filter((arm) => arm === 'control').length;
    expect([control > 5, control < 28, await arms()]).toEqual([true, true, first]);
  });

  test('applies the switch of a session while it runs', async () => {
    await outgoing(BODY);
    await setSteered(dataDir, sessionId('s-1'), { on: false, tidied: 0, steered: true, firstCalls: [] });
    const off = await outgoing(BODY);
    expect(isSent(off) ? off.steer?.how : 'refused').toBe('own');
    expect((JSON.parse(textOf(off)) as { readonly messages: unknown[] }).messages).toHaveLength(TURNS.length);
    await setSteered(dataDir, sessionId('s-1'), { on: true, tidied: 0, steered: true, firstCalls: [] });
    expect(textOf(await outgoing(BODY))).toContain('the earlier turns');
  });

  test('never fails, and changes nothing but the list, for mutated requests', async () => {
    let changed = 0;
    const one = fc.record({
      kind: fc.constantFrom('none', 'drop', 'again', 'swap', 'block', 'bytes'),
      at: fc.nat(20),
      value: fc.oneof(fc.jsonValue(), fc.constantFrom(...TURNS.flatMap(({ content }) => content as Json))),
      damage,
    });
    const mutated = (messages: readonly Json[], { kind, at, value }: Mutation): readonly Json[] => {
      const place = at % messages.length;
      const message = messages[place] as Json;
      if (kind === 'drop') return messages.length === 1 ? messages : messages.toSpliced(place, 1);
      if (kind === 'again') return messages.toSpliced(place, 0, message);
      if (kind === 'swap') return [...messages.slice(place), ...messages.slice(0, place)];
      const { content } = message;
      if (kind !== 'block' || !Array.isArray(content)) return messages;
      return messages.with(place, { ...message, content: content.with(at % content.length, value) });
    };
    await fc.assert(
      fc.asyncProperty(fc.array(one, { maxLength: 4 }), async (mutations) => {
        const whole = Buffer.from(bodyOf(mutations.reduce(mutated, TURNS)));
        const body = mutations.flatMap((of) => (of.kind === 'bytes' ? [of.damage] : [])).reduce(damaged, whole);
        const made = await outgoing(body);
        if (!isSent(made) || made.body.equals(body)) return;
        changed += 1;
        const before = JSON.parse(body.toString('utf8')) as WholeBody;
        const after = JSON.parse(made.body.toString('utf8')) as WholeBody;
        expect({ ...after, messages: [] }).toEqual({ ...before, messages: [] });
        if (pairFault(before.messages) === undefined) expect(pairFault(after.messages)).toBeUndefined();
        const own = new Set(before.messages.map((message) => JSON.stringify(message)));
        const foreign = after.messages.map((message) => JSON.stringify(message)).filter((message) => !own.has(message));
        const isOurs = /the earlier turns|a note|a line for the result/;
        if (made.steer?.how === 'steered') expect(foreign.filter((message) => !isOurs.test(message))).toEqual([]);
      }),
      { numRuns: effort(300, 20_000) },
    );
    expect(changed).toBeGreaterThan(50);
  });
});
