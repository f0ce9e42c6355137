import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { GatewayLog } from '../../../src/gateway/gateway-log.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
import { gatewayCompanion } from '../../../src/watch/gateway-contexts.js';
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
async function sends(prompt: string, answer: string): Promise<string> {
  const body = JSON.stringify({
    model: 'a-model',
    max_tokens: 100,
    tools: [{ name: 'Read', input_schema: {} }],
    messages: [{ role: 'user', content: [{ type: 'text', text: prompt }] }],
  });
  const request = await log.begin({
    at: Date.now(),
    wire: 'anthropic',
    upstream: 'anthropic',
    path: '/v1/messages',
    headers: { 'x-claude-code-session-id': id },
    body: Buffer.from(body),
  });
  await request?.end({ status: 200, id: `msg-${answer}`, texts: [hashText(answer)] });
  return body;
}

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
