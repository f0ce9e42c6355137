import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { SentRequest } from '../../../src/gateway/read-log.js';
import { damage, damaged } from '../../support/damage.js';
import { effort } from '../../support/effort.js';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { anthropicStream, chatStream, geminiStream, responsesStream } from '../../support/scripted-streams.js';
import { until } from '../../support/until.js';
import type { Answering } from '../../support/wire-ends.js';

const PATHS = [
  ['/anthropic/v1/messages?beta=true', anthropicStream('msg_1')],
  ['/codex/responses', responsesStream('resp_1')],
  ['/openai/v1/chat/completions', chatStream('chat_1')],
  ['/gemini/v1beta/models/m:streamGenerateContent?alt=sse', geminiStream('g_1')],
] as const;

/** Number of requests after which the log is compared with them. */
const BATCH = 50;

const BODY = JSON.stringify({
  model: 'm',
  messages: [{ role: 'user', content: [{ type: 'text', text: 'a "quoted" \\ text é ☕'.repeat(90) }] }],
  input: [{ type: 'message', role: 'user', content: 'q' }],
  contents: [{ role: 'user', parts: [{ text: 'q' }] }],
  tools: [{ name: 't', input_schema: {} }],
  metadata: { user_id: '{"session_id":"s"}' },
});

describe('the gateway under mutated requests and streams', () => {
  let gateway: ObservedGateway;
  let answer: Buffer = Buffer.alloc(0);
  let headers: Readonly<Record<string, string>> = {};
  beforeAll(async () => {
    const answers: Answering = (response) => {
      response.writeHead(200, headers);
      response.end(answer);
    };
    // With a mask, the log leaves out a body that is not text.
    gateway = await observe(answers, undefined, 'off');
  });
  afterAll(() => gateway.close());

  test('changes no byte of any of them, and logs each request as it was', async () => {
    let count = 0;
    const runs = effort(300, 20_000);
    const unseen: Buffer[] = [];
    /** Finds everything sent so far in the log. An answer that ends later is logged later. */
    const compareLog = async (): Promise<void> => {
      const logged: SentRequest[] = [];
      await until(
        async () => logged.push(...(await gateway.logged())),
        (length) => length >= unseen.length,
      );
      expect(logged).toHaveLength(unseen.length);
      for (const { encoded, spans } of logged) {
        const body = Buffer.concat(spans);
        const place = encoded?.isDecoded === true ? 0 : unseen.findIndex((sent) => sent.equals(body));
        expect(place).toBeGreaterThanOrEqual(0);
        if (encoded?.isDecoded !== true) unseen.splice(place, 1);
      }
      expect(unseen).toHaveLength(logged.filter(({ encoded }) => encoded?.isDecoded === true).length);
      unseen.length = 0;
    };
    const one = fc.record({
      path: fc.constantFrom(...PATHS),
      body: fc.array(damage, { maxLength: 3 }),
      stream: fc.array(damage, { maxLength: 3 }),
      type: fc.constantFrom('text/event-stream', 'application/json', 'text/event-stream; charset=utf-8', 'x'),
      encoding: fc.constantFrom('identity', 'identity', 'identity', 'gzip', 'br', 'deflate', 'zstd', 'unknown'),
      claims: fc.constantFrom('', '', 'gzip', 'br', 'unknown'),
    });
    await fc.assert(
      fc.asyncProperty(one, async ({ path: [path, text], body, stream, type, encoding, claims }) => {
        const sent = body.reduce(damaged, Buffer.from(BODY));
        answer = stream.reduce(damaged, Buffer.from(text));
        headers = { 'content-type': type, ...(encoding === 'identity' ? {} : { 'content-encoding': encoding }) };
        gateway.upstream.received.length = 0;
        const got = await gateway.send(path, {
          headers: claims === '' ? [] : ['Content-Encoding', claims],
          body: sent,
        });
        expect(got.body.equals(answer)).toBe(true);
        expect(gateway.upstream.received.map((message) => message.body.equals(sent))).toEqual([true]);
        unseen.push(sent);
        count += 1;
        if (unseen.length === BATCH) await compareLog();
      }),
      // A run depends on those before it in its batch, so a failure is not made smaller.
      { numRuns: runs, endOnFailure: true },
    );
    await compareLog();
    expect(gateway.troubles).toEqual([]);
    expect(count).toBeGreaterThanOrEqual(runs);
  });
});
