import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { GatewayLog, gatewayFolder } from '../../../src/gateway/gateway-log.js';
import { LogFile } from '../../../src/gateway/log-file.js';
import { GatewayLogReader } from '../../../src/gateway/read-log.js';
import { PastContexts } from '../../../src/history/rebuild/past-context.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { gatewayCompanion, gatewayCompanionWith } from '../../../src/watch/gateway-contexts.js';
import { RecordingLines } from '../../support/replays.js';
import { until } from '../../support/until.js';
import { WatchedMachine } from '../../support/watched.js';

let watched: WatchedMachine;
let id: string;
let log: GatewayLog;
beforeEach(async () => {
  watched = await WatchedMachine.create();
  id = watched.prefix;
  log = new GatewayLog(watched.dataDir, {
    failed: (reason) => {
      throw new Error(reason);
    },
  });
});
afterEach(async () => {
  await log.close();
  await watched.remove();
});

const at = (): string => `.claude/projects/-p/${id}.jsonl`;
const transcript = (): string =>
  new RecordingLines().user('go').says('one').user('on').says('two').text.replaceAll('"s-1"', JSON.stringify(id));

/** A request and its answer in the log. */
interface Logged extends Pick<Parameters<typeof log.begin>[0], 'wire' | 'path' | 'headers'> {
  readonly at: number;
  readonly facts: object;
  readonly content: readonly object[];
}

/** Logs a request and its answer, as a gateway does. By default it is one of the session. */
async function logs(asked: object, answer: string, given: Partial<Logged> = {}): Promise<string> {
  const { at: time = Date.now(), wire = 'anthropic', path = '/v1/messages', content, facts } = given;
  const body = JSON.stringify(asked);
  const request = await log.begin({
    at: time,
    wire,
    upstream: 'anthropic',
    path,
    headers: given.headers ?? { 'x-claude-code-session-id': id },
    body: Buffer.from(body),
  });
  const kept = content === undefined ? undefined : Buffer.from(JSON.stringify(content));
  await request?.end({ status: 200, id: `msg-${answer}`, texts: [hashText(answer)], ...facts }, kept);
  return body;
}

const sends = (prompt: string, answer: string): Promise<string> =>
  logs(
    {
      model: 'a-model',
      max_tokens: 100,
      tools: [{ name: 'Read', input_schema: {} }],
      messages: [{ role: 'user', content: [{ type: 'text', text: prompt }] }],
    },
    answer,
  );

/** The contexts of a session that came from the gateway. */
async function sent(of = id) {
  const all = await (await watched.store.latest()).assemblies(sessionId(of)).catch(() => []);
  return all.filter(({ delivered }) => delivered === 'gateway').map(({ step, sha256 }) => [step, sha256]);
}

describe('requests in the gateway’s log', () => {
  test('become the contexts of their session, whether log or transcript comes first', async () => {
    await watched.start({}, [gatewayCompanion]);
    const first = await sends('go', 'one');
    await watched.append(at(), transcript());
    await watched.reached(id, 4);
    const second = await sends('on', 'two');
    const contexts = await until(
      () => sent(),
      (found) => found.length >= 2,
    );
    expect(contexts).toEqual([
      [1, hashText(first)],
      [3, hashText(second)],
    ]);
  });

  test('that continue an earlier answer become whole contexts, marked as rebuilt', async () => {
    await watched.start({}, [gatewayCompanion]);
    const user = (content: string) => ({ role: 'user', content: [{ type: 'text', text: content }] });
    const block = { type: 'text', text: 'one' };
    const tools = [{ name: 'Read', input_schema: {} }];
    const first = { model: 'a-model', max_tokens: 100, thread: { type: 'create' }, tools, messages: [user('go')] };
    const thread = { type: 'continue', previous_message_id: 'msg-one' };
    const second = { model: 'a-model', max_tokens: 100, thread, messages: [user('on')] };
    await logs(first, 'one', { content: [block] });
    await logs(second, 'two');
    await watched.append(at(), transcript());
    const contexts = await until(
      () => sent(),
      (found) => found.length >= 2,
    );
    const whole = { ...first, ...second, messages: [user('go'), { role: 'assistant', content: [block] }, user('on')] };
    expect(contexts[1]).toEqual([3, hashText(JSON.stringify(whole))]);
    await watched.stop();
    const past = new PastContexts(await Timeline.open(watched.store));
    const when = { moment: { kind: 'step', seq: 3 } } as const;
    expect(await past.at(sessionId(id), when)).toMatchObject({ rebuiltFrom: 1, matches: true, kind: 'sent' });
  });

  test('wait no longer than others if their time is in the future', async () => {
    await watched.start({}, [gatewayCompanionWith({ againMs: 20, giveUpMs: 300 })]);
    await watched.append(at(), transcript());
    await watched.reached(id, 4);
    await logs({ tools: [{ name: 'Read' }], messages: [] }, 'never', { at: Date.now() + 3_600_000 });
    const state = await until(watched.state, (found) => (found?.notices.length ?? 0) > 0);
    expect(state?.notices[0]?.line).toContain('its answer is not in the transcript');
  });

  test('leave the log once their gateway has ended and they are old', async () => {
    const folder = gatewayFolder(watched.dataDir);
    await sends('go', 'one');
    const [living = ''] = await readdir(folder);
    const [dead, fresh] = ['0-dead.log', '0-fresh.log'];
    for (const name of [dead, fresh]) {
      const file = await LogFile.create(join(folder, name), Date.now);
      await file.append({ kind: 'head', format: 1, pid: 2 ** 22 - 1, started: 'long ago' });
      await file.close();
    }
    const old = new Date(Date.now() - 8 * 86_400_000);
    for (const name of [living, dead]) await utimes(join(folder, name), old, old);
    await watched.start({}, [gatewayCompanion]);
    await until(
      () => readdir(folder),
      (names) => !names.includes(dead),
    );
    expect((await readdir(folder)).sort()).toEqual([fresh, living].sort());
  });

  test('are recorded once, even if the watcher restarts or was away', async () => {
    await watched.append(at(), transcript());
    await watched.start({}, [gatewayCompanion]);
    await sends('go', 'one');
    await until(
      () => sent(),
      (found) => found.length === 1,
    );
    await watched.stop();
    await sends('on', 'two');
    await watched.start({}, [gatewayCompanion]);
    await until(
      () => sent(),
      (found) => found.length >= 2,
    );
    await watched.stop();
    expect((await sent()).map(([step]) => step)).toEqual([1, 3]);
  });

  test('of Gemini CLI belong to the session whose transcript has their prompt and answer', async () => {
    const path = (name: string): string => `.gemini/tmp/p/chats/session-${name}.jsonl`;
    const chat = (name: string, prompt: string): string =>
      [
        { sessionId: name, projectHash: 'p', startTime: '2026-11-20T10:00:00.000Z', kind: 'main', directories: ['/p'] },
        { id: 'm1', timestamp: '2026-11-20T10:00:00.000Z', type: 'user', content: [{ text: prompt }] },
        { id: 'm2', timestamp: '2026-11-20T10:00:01.000Z', type: 'gemini', content: 'It is done.', tokens: null },
      ]
        .map((line) => `${JSON.stringify(line)}\n`)
        .join('');
    await watched.start({}, [gatewayCompanionWith({ againMs: 20 })]);
    const gemini = {
      wire: 'gemini',
      path: '/v1beta/models/g:streamGenerateContent',
      headers: { 'user-agent': 'GeminiCLI/0.61.0/g (linux; x64)' },
    } as const;
    const contents = [{ role: 'user', parts: [{ text: 'count the lines' }] }];
    const tools = [{ functionDeclarations: [{ name: 'read_file' }] }];
    const body = await logs({ contents, tools }, 'It is done.', gemini);
    await watched.append(path(`${id}-a`), chat(`${id}-a`, 'another question'));
    await watched.append(path(`${id}-b`), chat(`${id}-b`, 'count the lines'));
    const contexts = await until(
      () => sent(`${id}-b`),
      ({ length }) => length > 0,
    );
    expect(contexts).toEqual([[1, hashText(body)]]);
    expect(await sent(`${id}-a`)).toEqual([]);
  });

  test.each([
    {
      wire: 'chat' as const,
      path: '/v1/chat/completions',
      bodies: [
        {
          messages: [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: 'QUESTION' },
          ],
        },
        {
          messages: [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: 'QUESTION' },
            {
              role: 'assistant',
              content: null,
              tool_calls: [{ id: 'c1', type: 'function', function: { name: 'ls', arguments: '{}' } }],
            },
            { role: 'tool', tool_call_id: 'c1', content: 'a.ts' },
          ],
        },
      ],
    },
    {
      wire: 'responses' as const,
      path: '/v1/responses',
      bodies: [
        { instructions: 'Be brief.', input: 'QUESTION' },
        {
          instructions: 'Be brief.',
          input: [
            { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'QUESTION' }] },
            { type: 'function_call', call_id: 'c1', name: 'ls', arguments: '{}' },
            { type: 'function_call_output', call_id: 'c1', output: 'a.ts' },
          ],
        },
      ],
    },
  ])('of an unknown client of the API $wire make a session of their own', async ({ wire, path, bodies }) => {
    await watched.start({}, [gatewayCompanion]);
    const tools = [{ type: 'function', name: 'ls' }];
    const texts: string[] = [];
    for (const body of bodies) {
      const asked = JSON.parse(
        JSON.stringify({ ...body, tools }).replaceAll('QUESTION', `what is in ${id}?`),
      ) as object;
      texts.push(await logs(asked, `answer ${texts.length}`, { wire, path, headers: {} }));
    }
    const reader = new GatewayLogReader(gatewayFolder(watched.dataDir));
    const natives = new Set<string | undefined>();
    for await (const { session } of reader.more()) natives.add(session?.native);
    const [native = ''] = natives;
    expect(natives.size).toBe(1);
    const contexts = await until(
      () => sent(native),
      ({ length }) => length >= 2,
    );
    expect(contexts).toEqual([
      [1, hashText(texts[0] ?? '')],
      [3, hashText(texts[1] ?? '')],
    ]);
    const steps = await watched.steps(native);
    expect(steps.map(({ message, call }) => message?.text ?? call?.id.split('@')[0])).toEqual([
      `what is in ${id}?`,
      '',
      'c1',
    ]);
    expect(await verifySession(watched.store, native)).toMatchObject({ ok: true });
  });
});
