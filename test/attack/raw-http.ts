import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** Far longer than any answer takes. */
const LIMIT_MS = 20_000;

/** The target of raw bytes. */
export type RawTarget = NetConnectOpts;

/** Opens a raw connection. The other side gets only the bytes that are written to it. */
export function rawSocket(target: RawTarget): Socket {
  const socket = connect(target);
  // A server may close a connection at any time, which counts as an answer.
  socket.on('error', () => undefined);
  return socket;
}

/**
 * Sends bytes and returns all received data until the other side closes, or until nothing has come
 * for `quietMs`. A server that waits for the rest of a request stays silent.
 */
export function exchange(target: RawTarget, bytes: Buffer, quietMs: number): Promise<string> {
  const socket = rawSocket(target);
  let text = '';
  return new Promise((resolve, reject) => {
    const limit = setTimeout(
      () => reject(new Error(`no end of ${JSON.stringify(text.slice(0, 200))} within ${LIMIT_MS} ms`)),
      LIMIT_MS,
    );
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

/** Returns the statuses of all answers in a text. */
export const statusesOf = (text: string): readonly number[] =>
  [...text.matchAll(/^HTTP\/1\.[01] (\d{3})/gm)].map(([, status]) => Number(status));
