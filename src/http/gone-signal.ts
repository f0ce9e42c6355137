import type { ServerResponse } from 'node:http';

/** Fires when the client has gone before it was answered. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableEnded) gone.abort(new Error('the client has gone'));
  });
  return gone.signal;
}
