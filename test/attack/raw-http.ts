import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** Far longer than any answer takes. */
const LIMIT_MS = 20_000;

/** Where raw bytes are sent. */
export type RawTarget = NetConnectOpts;

/** A connection that stays as it is until it is ended: what it was sent is all that the other side gets. */
export function rawSocket(target: RawTarget): Socket {
  const socket = connect(target);
  // A server may end a connection at any time: that is an answer.
  socket.on('error', () => undefined);
  return socket;
}

/**
 * Sends bytes and gives everything that comes back until the other side ends the connection, or until nothing has come for `quietMs`: whoever waits for
 * the rest of a request says nothing more.
 */
export function exchange(target: RawTarget, bytes: Buffer, quietMs: number): Promise<string> {
  const socket = rawSocket(target);
  let text = '';
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`no end of ${JSON.stringify(text.slice(0, 200))} within ${LIMIT_MS} ms`)), LIMIT_MS);
    const end = (): void => {
      clearTimeout(limit);
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(quietMs, end);
    socket.on('close', end);
    socket.on('data', (piece) => {
      text += piece.toString('latin1');
    });
    socket.write(bytes);
  });
}

/** The statuses of all answers in what came back. */
export const statusesOf = (text: string): readonly number[] =>
  [...text.matchAll(/^HTTP\/1\.[01] (\d{3})/gm)].map(([, status]) => Number(status));
