import type { IncomingMessage } from 'node:http';
import { ApiError } from './problem.js';

/**
 * Reads a request's JSON body. Throws ApiError `not-json` for another content type, `body-too-large` above the limit, `invalid-request` for what is no
 * JSON; an empty body is an empty object.
 */
export async function jsonBody(request: IncomingMessage, mostBytes: number): Promise<unknown> {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > mostBytes) throw new ApiError('body-too-large', `the body has ${declared} bytes; at most ${mostBytes} are taken`);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > mostBytes) throw new ApiError('body-too-large', `the body has more than ${mostBytes} bytes`);
    pieces.push(piece);
  }
  if (bytes === 0) return {};
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new ApiError('not-json', 'send the body as application/json');
  try {
    return JSON.parse(Buffer.concat(pieces).toString('utf8'));
  } catch {
    throw new ApiError('invalid-request', 'the body is no JSON');
  }
}
