import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { importBundle } from '../../../src/bundle/import-bundle.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { bodySpans } from '../../../src/gateway/body-spans.js';
import type { SentRequest } from '../../../src/gateway/read-log.js';
import { bodyPieces, recordSent } from '../../../src/gateway/record-sent.js';
import { PastContexts } from '../../../src/history/rebuild/past-context.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { hashText } from '../../../src/objects/hashes.js';
import { askRequest } from '../../../src/page/server/request-view.js';
import { askPrefixes } from '../../../src/review/ask/prefix-diff.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { chunkPart } from '../../../src/store/texts.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { askHere } from '../../support/ask-here.js';
import { openClient } from '../../support/context.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { ownNode } from '../../support/own-node.js';

type Json = Readonly<Record<string, unknown>>;

const FILE = 'line of a file\n'.repeat(900);

/** A request of Claude Code: the marks move to the last message, and the prompt is at the end. */
function bodyOf(messages: readonly Json[], nth: number): string {
  const marked = messages.map((message, i) =>
    i < messages.length - 1
      ? message
      : {
          ...message,
          content: (message.content as readonly Json[]).map((block) => ({
            ...block,
            cache_control: { type: 'ephemeral' },
          })),
        },
  );
  return JSON.stringify({
    model: 'claude-test',
    messages: marked,
    system: [
      { type: 'text', text: `x-anthropic-billing-header: cc_version=${nth}` },
      { type: 'text', text: 'Be careful.', cache_control: { type: 'ephemeral' } },
    ],
    tools: [{ name: 'Read', description: 'reads', input_schema: { type: 'object' } }],
    max_tokens: 32_000,
    stream: true,
  });
}

const text = (role: string, said: string): Json => ({ role, content: [{ type: 'text', text: said }] });
const uses = (id: string): Json => ({
  role: 'assistant',
  content: [
    { type: 'thinking', thinking: '', signature: 'c2ln' },
    { type: 'tool_use', id, name: 'Read', input: { file_path: '/a' } },
  ],
});
const result = (id: string, content: string): Json => ({
  role: 'user',
  content: [{ type: 'tool_result', tool_use_id: id, content }],
});

describe('a sent request', () => {
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;
  let session: ContextSession;
  let name: string;
  let now = Date.parse('2026-11-22T10:00:00Z');
  let names = 0;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root, { clock: () => now });
  });
  afterAll(async () => {
    await client.close();
    await remove();
  });

  const begin = async (): Promise<void> => {
    names += 1;
    name = `sent-${process.pid}-${names}`;
    session = await client.openSession({ id: name });
  };
  const request = (
    body: string,
    answer: Partial<SentRequest['answer']>,
    more: Partial<SentRequest> = {},
  ): SentRequest => {
    now += 1_000;
    return {
      id: `log:${now}`,
      at: now,
      wire: 'anthropic',
      path: '/v1/messages',
      headers: {},
      encoded: undefined,
      session: { agent: 'claude-code', native: name, from: 'header' },
      isReadable: true,
      spans: bodySpans(Buffer.from(body)),
      answer: { status: 200, ...answer },
      ...more,
    };
  };
  const say = async (role: 'user' | 'assistant', said: string, native?: string): Promise<void> => {
    now += 10;
    await session.reportMessage({ role, text: said }, native);
  };
  const read = async (id: string, output: string): Promise<void> => {
    now += 10;
    await session.recordCall({
      tool: 'Read',
      args: { file_path: '/a' },
      content: output,
      status: 'ok',
      callId: `${id}@${name}`,
      startedAt: now,
      readings: [],
      mentions: [],
      answer: () => output,
    });
  };
  const timeline = async () => Timeline.open(await client.delivered());
  const contextAt = async (step: number) =>
    new PastContexts(await timeline()).at(session.id, { moment: { kind: 'step', seq: step } });

  /** Records a session of three model calls, as its transcript and its gateway report it. */
  async function recorded() {
    await begin();
    const [t1, t2] = [`toolu_${names}_1`, `toolu_${names}_2`];
    const history: Json[] = [text('user', 'look at the file')];
    const bodies: string[] = [];
    const outcomes: unknown[] = [];
    const model = async (answer: Partial<SentRequest['answer']>, ...more: readonly Json[]): Promise<SentRequest> => {
      bodies.push(bodyOf(history, bodies.length));
      const sent = request(bodies.at(-1) ?? '', answer);
      history.push(...more);
      return sent;
    };
    await say('user', 'look at the file');
    const first = await model(
      { id: 'msg_1', calls: [t1], usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 3_000 } },
      uses(t1),
      result(t1, FILE),
    );
    await say('assistant', '');
    await read(t1, FILE);
    const second = await model(
      { id: 'msg_2', calls: [t2], texts: [hashText('Once more.')] },
      { role: 'assistant', content: [{ type: 'text', text: 'Once more.' }, ...(uses(t2).content as Json[])] },
      result(t2, `${FILE}end`),
    );
    await say('assistant', 'Once more.');
    await read(t2, `${FILE}end`);
    const third = await model({ id: 'msg_3', stop: 'end_turn', texts: [hashText('It is long.')] });
    await say('assistant', 'It is long.');
    for (const one of [first, second, third]) outcomes.push(await recordSent(session, one));
    return { bodies, outcomes, requests: [first, second, third] };
  }

  test('is the context at the step before its answer, byte for byte', async () => {
    const { bodies, outcomes } = await recorded();
    expect(outcomes).toEqual([1, 3, 5].map((step) => ({ outcome: 'recorded', step })));
    for (const [i, step] of [1, 3, 5].entries()) {
      const context = await contextAt(step);
      expect(context).toMatchObject({ kind: 'sent', delivered: 'gateway', matches: true, renderer: 'sent' });
      expect(context.text).toBe(bodies[i]);
      expect(context.sha256).toBe(hashText(bodies[i] ?? ''));
    }
    const said = await askHere(['context', `${name}@turn:1`, '--raw', '--data', suiteData()]);
    expect(said.stdout).toBe(bodies[2]);
  });

  test('is recorded once, however often it is reported', async () => {
    const { requests } = await recorded();
    for (const one of requests) expect(await recordSent(session, one)).toMatchObject({ outcome: 'recorded' });
    const records = await (await timeline()).records(session.id);
    expect(records.map(({ step }) => step)).toEqual([1, 3, 5]);
  });

  test('stores a repeatedly sent file once', async () => {
    const { bodies } = await recorded();
    const [last = ''] = bodies.slice(-1);
    expect(last.split('line of a file').length).toBe(1_801);
    const snapshot = await (await client.delivered()).latest();
    expect((await snapshot.texts([hashText(last)])).get(hashText(last))).toBe(last);
  });

  test('explains its prefix, with the usage that the provider reported', async () => {
    await recorded();
    const { compared } = await askPrefixes(await timeline(), { name, count: countHere });
    expect(compared).toHaveLength(2);
    for (const one of compared) expect(one).toMatchObject({ isPrefix: true, answers: { lost: 0 } });
    expect(compared.at(-1)?.from.usage).toEqual({ input: 10, output: 5, cacheRead: 0, cacheWrite: 3_000 });
  });

  test('names a message that was changed in its middle', async () => {
    await begin();
    await say('user', 'hello');
    const history = [text('user', 'hello')];
    const first = request(bodyOf(history, 1), { texts: [hashText('Hi.')] });
    await say('assistant', 'Hi.');
    await say('user', 'and now?');
    const changed = [text('user', 'hello!'), text('assistant', 'Hi.'), text('user', 'and now?')];
    const second = request(bodyOf(changed, 2), { texts: [hashText('Well.')] });
    await say('assistant', 'Well.');
    for (const one of [first, second]) await recordSent(session, one);
    const { compared } = await askPrefixes(await timeline(), { name, count: countHere });
    expect(compared[0]).toMatchObject({ isPrefix: false, difference: { section: 'list' } });
  });

  test('shows its parts, and which objects they are', async () => {
    await recorded();
    const view = await askRequest(await timeline(), `${name}@step:5`, {});
    expect(view.request).toMatchObject({ delivered: 'gateway', kind: 'sent', matches: true });
    const calls = view.items.filter(({ type }) => type === 'toolcall');
    expect(calls.map(({ name: tool }) => tool)).toEqual(['read /a', 'read /a', 'read /a', 'read /a']);
    expect(view.items.find(({ text: shown }) => shown.includes('look at the file'))).toMatchObject({ step: 1 });
    const report = await askHere(['report', 'detail', `${name}@step:5`, '--json', '--data', suiteData()]);
    const { objects, assembly } = JSON.parse(report.stdout) as {
      readonly objects: readonly Json[];
      readonly assembly: { readonly sections: readonly Json[] };
    };
    expect(objects).toHaveLength(2);
    expect(assembly.sections.find(({ name: section }) => section === 'chat')).toMatchObject({
      tokens: expect.any(Number),
    });
  });

  test('is not the context of an answer that a repeated request got after this one broke off', async () => {
    await begin();
    await say('user', 'hello');
    const body = bodyOf([text('user', 'hello')], 1);
    const call = `toolu_${names}_9`;
    const said = { id: 'msg_9', texts: [hashText('I read it.')] };
    await say('assistant', 'I read it.');
    await read(call, FILE);
    const broken = request(body, { ...said, isCut: true });
    const interrupted = request(body, { ...said, isCut: true, calls: [call] });
    const whole = request(body, { ...said, calls: [call] });
    expect(await recordSent(session, broken)).toEqual({ outcome: 'unmatched' });
    for (const one of [interrupted, whole])
      expect(await recordSent(session, one)).toEqual({ outcome: 'recorded', step: 1 });
    await say('user', 'and now?');
    await say('assistant', 'Well.');
    const last = request(body, { texts: [hashText('Well.')], isCut: true });
    expect(await recordSent(session, last)).toMatchObject({ outcome: 'recorded' });
  });

  test('is left out if it is a side request or an error, and waits for its answer', async () => {
    await begin();
    await say('user', 'hello');
    const body = bodyOf([text('user', 'hello')], 1);
    expect(await recordSent(session, request(body, { texts: [hashText('Hi.')] }))).toEqual({ outcome: 'unmatched' });
    expect(await recordSent(session, request(body, {}, { side: 'title' }))).toMatchObject({ outcome: 'left-out' });
    expect(await recordSent(session, request(body, { status: 529 }))).toMatchObject({ outcome: 'left-out' });
    const part = { thread: { type: 'continue', previous: 'msg_0' } } as const;
    expect(await recordSent(session, request(body, { texts: [hashText('Hi.')] }, part))).toEqual({
      outcome: 'left-out',
      why: 'part',
    });
    const binary = { spans: [Buffer.of(0xff, 0xfe)] };
    expect(await recordSent(session, request('', { texts: [hashText('Hi.')] }, binary))).toEqual({
      outcome: 'left-out',
      why: 'not-text',
    });
  });

  test('is verified here and in another database, where a changed piece of its body is found', async () => {
    const { bodies } = await recorded();
    const found = await verifySession(await client.delivered(), name);
    expect(found).toMatchObject({ ok: true, contexts: { total: 3, equal: 3, byDelivery: { gateway: 3 } } });
    const file = join(root, `${name}.bundle`);
    await exportBundle(await timeline(), { session: session.id, file });
    const node = await ownNode();
    const xtdb = new XtdbClient(node.address);
    try {
      await importBundle(new ObjectStore(xtdb), file, { clientDir: node.dataDir });
      const moved = await verifySession(new ObjectStore(xtdb), name);
      expect(moved).toMatchObject({ ok: true, contexts: { total: 3, equal: 3 } });
      const [piece = ''] = bodyPieces(bodySpans(Buffer.from(bodies[2] ?? ''))) ?? [];
      const doc = chunkPart(`${piece} `, hashText(piece));
      await xtdb.submit([{ op: 'put', doc, validTime: new Date(0) }]);
      const broken = await verifySession(new ObjectStore(xtdb), name);
      expect(broken.ok).toBe(false);
      expect(broken.contexts.unequal.at(-1)).toMatchObject({ cause: 'damaged' });
    } finally {
      await xtdb.close();
      await node.stop();
    }
  });

  test('is left out of a redacted bundle', async () => {
    const { bodies } = await recorded();
    const file = join(root, `${name}-masked.bundle`);
    const { code, stderr } = await askHere(['export', name, file, '--redact', '--data', suiteData()]);
    expect([code, stderr]).toEqual([0, '']);
    expect(gunzipSync(await readFile(file)).toString()).not.toContain(hashText(bodies[2] ?? ''));
  });
});
