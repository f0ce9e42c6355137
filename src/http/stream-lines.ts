import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

/** Maximum time a client may leave its socket undrained, milliseconds. */
const IDLE_MS = 120_000;

/** The content to send and its media type. */
interface Sent {
  readonly media: string;
  readonly lines: AsyncIterable<string>;
  readonly signal: AbortSignal;
}

/**
 * Sends compressed lines, as fast as the client drains them. Throws a failure before the first
 * line. A later failure closes the connection, so that no client mistakes a part for the whole. The
 * connection also closes if the client drains nothing for two minutes. Ends silently if the client
 * disconnects.
 */
export async function sendStream(response: ServerResponse, { media, lines, signal }: Sent): Promise<void> {
  const iterator = lines[Symbol.asyncIterator]();
  const first = await iterator.next();
  // A failure closes the response too. This variable distinguishes it from a disconnected client.
  let failure: { readonly error: unknown } | undefined;
  async function* all(): AsyncGenerator<string> {
    try {
      for (let next = first; next.done !== true; next = await iterator.next()) yield next.value;
    } catch (error) {
      if (!signal.aborted) failure = { error };
      throw error;
    }
  }
  response.writeHead(200, {
    'content-type': media,
    'content-disposition': 'attachment',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  });
  response.setTimeout(IDLE_MS, () => response.destroy());
  try {
    await pipeline(Readable.from(all()), createGzip({ level: 6 }), response, { signal });
  } catch (error) {
    response.destroy();
    if (failure !== undefined) throw failure.error;
    if (!signal.aborted) throw error;
  }
}
