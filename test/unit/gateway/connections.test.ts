import { once } from 'node:events';
import { connect } from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from '@jest/globals';
import { WebSocket } from 'undici';
import { upstreamBases } from '../../../src/gateway/bases.js';
import { openGateway } from '../../../src/gateway/gateway-action.js';
import { gatewayTroubles } from '../../../src/gateway/gateway-report.js';
import { type ObservedGateway, observe } from '../../support/observed-gateway.js';
import { anthropicStream } from '../../support/scripted-streams.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';
import { startWebSockets } from '../../support/web-socket-upstream.js';
import { type Answering, send } from '../../support/wire-ends.js';

let gateway: ObservedGateway | undefined;
const begin = async (answer: Answering): Promise<ObservedGateway> => {
  gateway = await observe(answer);
  return gateway;
};
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
});

/** Sends bytes over a new connection and returns everything that comes back. */
async function raw(address: string, text: string | Buffer): Promise<Buffer> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  const pieces: Buffer[] = [];
  socket.on('data', (piece) => pieces.push(piece));
  socket.write(text);
  await once(socket, 'close');
  return Buffer.concat(pieces);
}

const MESSAGES = '/anthropic/v1/messages';

describe('the Responses API over a WebSocket', () => {
  test('passes in both directions, with texts of any size and the client’s own headers', () =>
    withTemporaryFolder(async (dataDir) => {
      const long = 'a long text '.repeat(20_000);
      const upstream = await startWebSockets((text) => [`{"type":"response.created"}`, `${text.length} ${long}`]);
      const opened = await openGateway({
        dataDir,
        bases: upstreamBases([`openai=${upstream.url}`]),
        port: 0,
        onTrouble: (message) => expect(message).toBe('no trouble'),
      });
      try {
        const socket = new WebSocket(`${opened.address.replace('http', 'ws')}/openai/v1/responses`, {
          headers: { authorization: 'Bearer secret-of-the-test', 'openai-beta': 'responses_websockets=1' },
        });
        const heard: string[] = [];
        socket.addEventListener('message', ({ data }) => heard.push(String(data)));
        await once(socket, 'open');
        const asked = JSON.stringify({ type: 'response.create', previous_response_id: 'resp_1', input: long });
        socket.send(asked);
        socket.send('short');
        await until(
          async () => heard,
          ({ length }) => length === 4,
        );
        expect(upstream.received).toEqual([asked, 'short']);
        expect(heard[1]).toBe(`${asked.length} ${long}`);
        expect(upstream.heads[0]).toMatchObject({ authorization: 'Bearer secret-of-the-test' });
        const reported = await until(
          () => gatewayTroubles(dataDir),
          ({ length }) => length > 0,
        );
        expect(reported).toMatchObject([{ missed: 0, passed: 1 }]);
        socket.close();
      } finally {
        await opened.close();
        await upstream.close();
      }
    }));

  test('is refused with 426 before it reaches the provider if the gateway has to see each call', () =>
    withTemporaryFolder(async (dataDir) => {
      const upstream = await startWebSockets(() => []);
      const bases = upstreamBases([`codex=${upstream.url}`]);
      const opened = await openGateway({ dataDir, bases, port: 0, isHttpOnly: true, onTrouble: () => undefined });
      try {
        const head = (path: string): string =>
          `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
        const answer = (await raw(opened.address, head('/codex/responses'))).toString('latin1');
        expect(answer).toMatch(/^HTTP\/1\.1 426 Upgrade Required\r\n/);
        expect(upstream.heads).toEqual([]);
        expect(await gatewayTroubles(dataDir)).toEqual([]);
      } finally {
        await opened.close();
        await upstream.close();
      }
    }));
});

describe('a connection', () => {
  test('gets the early hints of the upstream before its answer', async () => {
    const { address } = await begin((response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload', 'x-hint': 'first' });
      response.end('{}');
    });
    const head = `POST ${MESSAGES} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`;
    const answer = (await raw(address, head)).toString('latin1');
    expect(answer).toMatch(/^HTTP\/1\.1 103 Early Hints\r\n[\s\S]*x-hint: first\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  });

  test('keeps a coding of the transfer beside its chunks, in both directions', async () => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: 'hello' }] });
    const packed = gzipSync(anthropicStream('msg_1'));
    const started = await begin((response, _, request) => {
      expect(request.headers['transfer-encoding']).toBe('gzip, chunked');
      response.writeHead(200, ['Content-Type', 'text/event-stream', 'Transfer-Encoding', 'gzip, chunked']);
      response.end(packed);
    });
    const answer = await send(`${started.address}${MESSAGES}`, {
      headers: ['Transfer-Encoding', 'gzip, chunked'],
      body: gzipSync(body),
    });
    expect(gunzipSync(started.upstream.received[0]?.body ?? Buffer.alloc(0)).toString()).toBe(body);
    expect(answer.body).toEqual(packed);
    const [logged] = await until(started.logged, ({ length }) => length > 0);
    expect(Buffer.concat(logged?.spans ?? []).toString()).toBe(body);
    expect(logged?.answer).toMatchObject({ id: 'msg_1', stop: 'tool_use' });
  });

  test('passes an answer with one event of endless lines, and reads no more of it', async () => {
    const line = `data: ${'x'.repeat(1_000_000)}\n`;
    const { address, logged } = await begin((response) => {
      response.writeHead(200, ['Content-Type', 'text/event-stream']);
      for (let n = 0; n < 36; n += 1) response.write(line);
      response.end(`\n\n${anthropicStream('msg_late')}`);
    });
    const answer = await send(`${address}${MESSAGES}`, { body: '{"messages":[]}' });
    expect(answer.body.length).toBeGreaterThan(36_000_000);
    const [one] = await until(logged, ({ length }) => length > 0);
    expect(one?.answer).toEqual({ status: 200, isCut: true });
  });

  test('drops a provider’s report that is longer than any real one', async () => {
    const long = { edits: 'x'.repeat(100_000) };
    const { address, logged } = await begin((response) => {
      response.writeHead(200, ['Content-Type', 'application/json']);
      response.end(JSON.stringify({ id: 'msg_1', content: [], context_management: long }));
    });
    await send(`${address}${MESSAGES}`, { body: '{"messages":[]}' });
    const [one] = await until(logged, ({ length }) => length > 0);
    expect(one?.answer?.verdicts).toEqual({ context_management: { left_out_chars: JSON.stringify(long).length } });
  });
});
