import { readdir, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { GatewayLog, gatewayFolder } from '../../../src/gateway/gateway-log.js';
import { LogFile } from '../../../src/gateway/log-file.js';
import { PastContexts } from '../../../src/history/rebuild/past-context.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
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

/** Logs a request of the session and its answer, as a gateway does. */
async function logs(asked: object, answer: string, content?: readonly object[], time = Date.now()): Promise<string> {
  const body = JSON.stringify(asked);
  const request = await log.begin({
    at: time,
    wire: 'anthropic',
    upstream: 'anthropic',
    path: '/v1/messages',
    headers: { 'x-claude-code-session-id': id },
    body: Buffer.from(body),
  });
  const kept = content === undefined ? undefined : Buffer.from(JSON.stringify(content));
  await request?.end({ status: 200, id: `msg-${answer}`, texts: [hashText(answer)] }, kept);
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

/** The contexts of the session that came from the gateway. */
async function sent() {
  const all = await (await watched.store.latest()).assemblies(sessionId(id));
  return all.filter(({ delivered }) => delivered === 'gateway').map(({ step, sha256 }) => [step, sha256]);
}

describe('requests in the gateway’s log', () => {
  test('become the contexts of their session, whether log or transcript comes first', async () => {
    await watched.start({}, [gatewayCompanion]);
    const first = await sends('go', 'one');
    await watched.append(at(), transcript());
    await watched.reached(id, 4);
    const second = await sends('on', 'two');
    const contexts = await until(sent, (found) => found.length >= 2);
    expect(contexts).toEqual([
      [1, hashText(first)],
      [3, hashText(second)],
    ]);
  });

  test('that go on from an earlier answer become whole contexts, and say so', async () => {
    await watched.start({}, [gatewayCompanion]);
    const user = (content: string) => ({ role: 'user', content: [{ type: 'text', text: content }] });
    const block = { type: 'text', text: 'one' };
    const tools = [{ name: 'Read', input_schema: {} }];
    const first = { model: 'a-model', max_tokens: 100, thread: { type: 'create' }, tools, messages: [user('go')] };
    const thread = { type: 'continue', previous_message_id: 'msg-one' };
    const second = { model: 'a-model', max_tokens: 100, thread, messages: [user('on')] };
    await logs(first, 'one', [block]);
    await logs(second, 'two', [{ type: 'text', text: 'two' }]);
    await watched.append(at(), transcript());
    const contexts = await until(sent, (found) => found.length >= 2);
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
    await logs(
      { model: 'a-model', tools: [{ name: 'Read' }], messages: [] },
      'never',
      undefined,
      Date.now() + 3_600_000,
    );
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

  test('are recorded once, also if the process begins again, and after it was away', async () => {
    await watched.append(at(), transcript());
    await watched.start({}, [gatewayCompanion]);
    await sends('go', 'one');
    await until(sent, (found) => found.length === 1);
    await watched.stop();
    await sends('on', 'two');
    await watched.start({}, [gatewayCompanion]);
    await until(sent, (found) => found.length >= 2);
    await watched.stop();
    expect((await sent()).map(([step]) => step)).toEqual([1, 3]);
  });
});
