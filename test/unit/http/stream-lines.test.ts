import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from '@jest/globals';
import { goneSignal } from '../../../src/http/question-queue.js';
import { sendStream } from '../../../src/http/stream-lines.js';

describe('a streamed file', () => {
  let close: (() => Promise<void>) | undefined;
  afterEach(() => close?.());

  /** Serves the lines. `ended` is the outcome of sending them. */
  async function serve(lines: () => AsyncIterable<string>) {
    const ended: Promise<unknown>[] = [];
    const server = createServer((_, response) => {
      const sent = sendStream(response, { media: 'application/gzip', lines: lines(), signal: goneSignal(response) });
      ended.push(
        sent.then(
          () => 'sent',
          (error: unknown) => {
            if (!response.headersSent) response.writeHead(500).end();
            return String(error);
          },
        ),
      );
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    close = async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ended };
  }

  test('arrives whole', async () => {
    const { url } = await serve(async function* () {
      for (let i = 0; i < 1_000; i += 1) yield `line ${i}\n`;
    });
    const response = await fetch(url);
    expect(response.headers.get('content-type')).toBe('application/gzip');
    const text = gunzipSync(Buffer.from(await response.arrayBuffer())).toString();
    expect(text.split('\n')).toHaveLength(1_001);
  });

  test('fails for the receiver if it breaks midway, and becomes a problem if it breaks before it begins', async () => {
    const broken = await serve(async function* () {
      for (let i = 0; i < 50_000; i += 1) yield `line ${i} ${Math.imul(i, 2_654_435_761)}\n`;
      throw new Error('the database went away');
    });
    const response = await fetch(broken.url);
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow();
    expect(await broken.ended[0]).toContain('the database went away');
    await close?.();
    const none = await serve(async function* () {
      yield* [];
      throw new Error('there is no such session');
    });
    expect((await fetch(none.url)).status).toBe(500);
  });

  test('stops being produced once the receiver is gone', async () => {
    let made = 0;
    const piece = Array.from({ length: 4_000 }, (_, i) => Math.imul(i + 1, 2_654_435_761).toString(36)).join('');
    const { url, ended } = await serve(async function* () {
      for (;;) {
        made += 1;
        yield `${made} ${piece}\n`;
        // Yields to other work, as a database query does.
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    const gone = new AbortController();
    const response = await fetch(url, { signal: gone.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    gone.abort();
    expect(await ended[0]).toBe('sent');
    const after = made;
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBe(after);
  });
});
