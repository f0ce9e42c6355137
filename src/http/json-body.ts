import type { IncomingMessage } from 'node:http';
import { ApiError } from './problem.js';

/** A body that is too large is read to its end nevertheless, so that its sender sees the answer; up to this many times the limit. */
const PATIENCE = 4;

const tooLarge = (most: number): ApiError =>
  new ApiError('body-too-large', `the body has more than ${most} bytes, which is the most that is taken`);

async function bytesOf(request: IncomingMessage, most: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > most * PATIENCE) throw tooLarge(most);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes <= most) pieces.push(piece);
    else if (bytes > most * PATIENCE) throw tooLarge(most);
    else pieces.length = 0;
  }
  if (bytes > most) throw tooLarge(most);
  return Buffer.concat(pieces);
}

/**
 * Reads a request's JSON body. Throws ApiError `not-json` for another content type, `body-too-large` above the limit, `invalid-request` for what is no
 * JSON; an empty body is an empty object.
 */
export async function jsonBody(request: IncomingMessage, mostBytes: number): Promise<unknown> {
  const bytes = await bytesOf(request, mostBytes);
  if (bytes.length === 0) return {};
  const type = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new ApiError('not-json', 'send the body as application/json');
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new ApiError('invalid-request', 'the body is no JSON');
  }
}
