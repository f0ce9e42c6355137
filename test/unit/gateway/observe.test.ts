import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/objects/hashes.js';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { anthropicStream, chatStream, geminiStream, responsesStream, stream } from '../../support/scripted-streams.js';
import { until } from '../../support/until.js';
import { type Answering, send } from '../../support/wire-ends.js';

let gateway: ObservedGateway;
const begin = async (answer: Answering): Promise<void> => {
  gateway = await observe(answer);
};
afterEach(() => gateway.close());

/** Waits for the one request that was logged. */
const onlyLogged = async () => (await until(gateway.logged, ({ length }) => length > 0))[0];

const WIRES = [
  {
    wire: 'anthropic',
    path: '/anthropic/v1/messages?beta=true',
    text: anthropicStream('msg_1'),
    facts: {
      id: 'msg_1',
      model: 'claude-test',
      calls: ['toolu_7'],
      blocks: ['thinking', 'text', 'tool_use'],
      texts: [hashText('I read the file.')],
      stop: 'tool_use',
      usage: { input: 3, output: 17, cacheRead: 200, cacheWrite: 40, cacheWriteHour: 30 },
      verdicts: { input_transformations: [{ type: 'thinking_dropped', blocks: 2 }] },
    },
  },
  {
    wire: 'responses',
    path: '/codex/responses',
    text: responsesStream('resp_1'),
    facts: {
      id: 'resp_1',
      model: 'gpt-test',
      items: ['rs_1', 'msg_1', 'fc_1'],
      calls: ['call_1'],
      blocks: ['reasoning', 'message', 'function_call'],
      texts: [hashText('I look.')],
      stop: 'completed',
      usage: { input: 36, output: 9, cacheRead: 64 },
    },
  },
  {
    wire: 'chat',
    path: '/openai/v1/chat/completions',
    text: chatStream('chatcmpl-1'),
    facts: {
      id: 'chatcmpl-1',
      model: 'gpt-test',
      calls: ['call_9'],
      texts: [hashText('Well.')],
      stop: 'tool_calls',
      usage: { input: 18, output: 5, cacheRead: 32 },
    },
  },
  {
    wire: 'gemini',
    path: '/gemini/v1beta/models/gemini-test:streamGenerateContent?alt=sse',
    text: geminiStream('g-1'),
    facts: {
      id: 'g-1',
      model: 'gemini-test',
      calls: ['g1'],
      texts: [hashText('Let me see.')],
      stop: 'STOP',
      usage: { input: 50, output: 4, cacheRead: 20 },
    },
  },
] as const;

describe.each(WIRES)('observe on the wire $wire', ({ wire, path, text, facts }) => {
  const body = `{ "model":"m",  "messages":[{"role":"user","content":"\\u00e9\\ud83d hi"}],"stream":true}\n`;

  test('passes a request and its stream byte for byte and logs both', async () => {
    await begin((response) => stream(response, text));
    const headers = ['X-Odd-CASE', 'a  b', 'content-type', 'application/json', 'Authorization', 'Bearer secret-token'];
    const answer = await gateway.send(path, { headers, body });
    const [received] = gateway.upstream.received;
    expect(received?.start).toBe(`POST ${path.replace(/^\/[a-z]+/, '')}`);
    expect(received?.headers).toEqual([
      'X-Odd-CASE: a  b',
      'content-type: application/json',
      'Authorization: Bearer secret-token',
      `Content-Length: ${Buffer.byteLength(body)}`,
    ]);
    expect(received?.body.toString('latin1')).toBe(Buffer.from(body).toString('latin1'));
    expect(answer.body.toString('utf8')).toBe(text);
    expect(answer.start).toBe('200 OK');
    expect(answer.headers).toContain('X-Request-Id: req_1');

    const logged = await onlyLogged();
    expect(logged).toMatchObject({ wire, isReadable: true, answer: { status: 200, ...facts } });
    expect(logged?.answer).not.toHaveProperty('isCut');
    expect(Buffer.concat(logged?.spans ?? []).toString('utf8')).toBe(body);
    expect(JSON.stringify(logged?.headers)).not.toContain('secret');
  });

  test('reads a compressed stream from a copy and passes the compressed bytes', async () => {
    const packed = gzipSync(text);
    await begin((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' });
      response.end(packed);
    });
    const answer = await gateway.send(path, { body });
    expect(answer.body.equals(packed)).toBe(true);
    expect(gunzipSync(answer.body).toString('utf8')).toBe(text);
    expect((await onlyLogged())?.answer).toMatchObject({ status: 200, ...facts });
  });

  test('passes a compressed request and logs its decoded text', async () => {
    await begin((response) => stream(response, text));
    const packed = gzipSync(body);
    await gateway.send(path, { headers: ['Content-Encoding', 'gzip'], body: packed });
    expect(gateway.upstream.received[0]?.body.equals(packed)).toBe(true);
    const logged = await onlyLogged();
    expect(logged?.encoded).toEqual({ by: 'gzip', bytes: packed.length, isDecoded: true });
    expect(Buffer.concat(logged?.spans ?? []).toString('utf8')).toBe(body);
  });
});

describe('observe', () => {
  test.each([
    ['GET', '/anthropic/v1/models?limit=20', ''],
    ['POST', '/anthropic/v1/messages/count_tokens?beta=true', '{"messages":[]}'],
    ['POST', '/anthropic/v1/messages/batches', '{"requests":[]}'],
    ['HEAD', '/anthropic/', ''],
    ['DELETE', '/openai/v1/files/f%2F1?x=%20', ''],
    ['POST', '/anthropic//v1/../odd;path?q=[1]', 'x'],
  ])('passes %s %s and does not log it', async (method, path, body) => {
    await begin((response) => {
      response.writeHead(418, 'Odd Status', ['Retry-After', '7', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']);
      response.end(method === 'HEAD' ? undefined : 'every method has this');
    });
    const answer = await gateway.send('', { method, path, body });
    expect(gateway.upstream.received[0]?.start).toBe(`${method} ${path.replace(/^\/[a-z]+/, '')}`);
    expect(gateway.upstream.received[0]?.body.toString()).toBe(body);
    expect(answer).toMatchObject({ start: '418 Odd Status' });
    expect(answer.headers.slice(0, 3)).toEqual(['Retry-After: 7', 'Set-Cookie: a=1', 'Set-Cookie: b=2']);
    expect(answer.body.toString()).toBe(method === 'HEAD' ? '' : 'every method has this');
    expect(await gateway.logged()).toEqual([]);
  });

  test.each([
    ['a foreign Host', ['Host', 'evil.example']],
    ['a foreign Origin', ['Origin', 'https://evil.example']],
  ])('rejects %s and forwards nothing', async (_, headers) => {
    await begin((response) => response.end('no'));
    const answer = await gateway.send('/anthropic/v1/messages', { headers, body: '{}' });
    expect(answer.start).toBe('403 Forbidden');
    expect(gateway.upstream.received).toEqual([]);
  });

  test('names the upstreams if a path begins with none', async () => {
    await begin((response) => response.end('no'));
    const answer = await gateway.send('/v1/messages', { body: '{}' });
    expect(answer.start).toBe('404 Not Found');
    expect(answer.body.toString()).toContain('Begin the path with /anthropic');
  });

  test('says which upstream it cannot reach', async () => {
    await begin((response) => response.end('no'));
    await gateway.upstream.close();
    const answer = await gateway.send('/anthropic/v1/messages', { body: '{"messages":[]}' });
    expect(answer.start).toBe('502 Bad Gateway');
    expect(answer.body.toString()).toContain(`cannot reach ${gateway.upstream.url}`);
    expect(await onlyLogged()).toMatchObject({ answer: undefined });
  });

  test('keeps errors, their wording, status and retry-after', async () => {
    const error = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}';
    await begin((response) => {
      response.writeHead(529, 'Overloaded', ['Retry-After', '3', 'X-Should-Retry', 'true']);
      response.end(error);
    });
    const answer = await gateway.send('/anthropic/v1/messages', { body: '{"messages":[]}' });
    expect(answer).toMatchObject({ start: '529 Overloaded', body: Buffer.from(error) });
    expect(answer.headers.slice(0, 2)).toEqual(['Retry-After: 3', 'X-Should-Retry: true']);
    expect((await onlyLogged())?.answer).toEqual({
      status: 529,
      error: { type: 'overloaded_error', message: 'Overloaded' },
    });
  });

  test('ends the upstream request if the client leaves, and marks the answer as cut', async () => {
    let left = false;
    await begin((response) => {
      response.on('close', () => {
        left = true;
      });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(anthropicStream('msg_2').slice(0, 600));
    });
    const control = new AbortController();
    const answer = await fetch(`${gateway.address}/anthropic/v1/messages`, {
      method: 'POST',
      body: '{"messages":[]}',
      signal: control.signal,
    });
    await answer.body?.getReader().read();
    control.abort();
    await until(
      () => left,
      (isLeft) => isLeft,
    );
    expect((await onlyLogged())?.answer).toMatchObject({ id: 'msg_2', isCut: true });
  });

  test('cuts the client off where the upstream is cut off', async () => {
    const text = anthropicStream('msg_3').slice(0, 900);
    await begin((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(text, () => response.destroy());
    });
    await expect(send(`${gateway.address}/anthropic/v1/messages`, { body: '{"messages":[]}' })).rejects.toMatchObject({
      code: 'ECONNRESET',
    });
    expect((await onlyLogged())?.answer).toMatchObject({ id: 'msg_3', isCut: true });
  });

  test('sends each event on before the next one is made', async () => {
    let next = (): void => undefined;
    await begin((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let n = 0;
      next = () => {
        n += 1;
        response.write(`event: ping\ndata: {"type":"ping","n":${n}}\n\n`);
        if (n === 3) response.end();
      };
      next();
    });
    const answer = await fetch(`${gateway.address}/anthropic/v1/messages`, { method: 'POST', body: '{}' });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    for (const n of [1, 2, 3]) {
      const { value } = await reader.read();
      expect(Buffer.from(value ?? []).toString()).toBe(`event: ping\ndata: {"type":"ping","n":${n}}\n\n`);
      next();
    }
  });

  test('stops reading an answer that its client does not read', async () => {
    let isHeld = false;
    let written = 0;
    await begin((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const more = (): void => {
        for (let i = 0; i < 2_000; i += 1) {
          written += 64_000;
          if (!response.write(`data: ${'x'.repeat(64_000)}\n\n`)) {
            isHeld = true;
            return;
          }
        }
      };
      more();
      response.on('drain', () => {
        isHeld = false;
        more();
      });
    });
    const answer = await fetch(`${gateway.address}/anthropic/v1/messages`, { method: 'POST', body: '{}' });
    let calm = 0;
    await until(
      () => {
        calm = isHeld ? calm + 1 : 0;
        return calm;
      },
      (held) => held >= 10,
    );
    // The system's sockets buffer a part of the answer.
    expect(written).toBeLessThan(64 * 1_048_576);
    await answer.body?.cancel();
  });
});
