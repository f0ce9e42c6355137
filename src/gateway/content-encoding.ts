import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { ownMember } from '../values/own-member.js';

/** Maximum size of a decoded body. A small encoded body can decode to a very large one. */
export const LARGEST_BODY = 64 * 1_048_576;

type Decode = (body: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

/** Node decodes zstd since 22.15. An older Node cannot read a zstd body. */
const zstd = (zlib as { readonly zstdDecompress?: unknown }).zstdDecompress as typeof zlib.gunzip | undefined;

const DECODERS: Readonly<Record<string, Decode | undefined>> = {
  gzip: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  'x-gzip': promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip),
  deflate: promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate),
  br: promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress),
  zstd: zstd === undefined ? undefined : promisify<Buffer, zlib.ZlibOptions, Buffer>(zstd),
};

/**
 * Decodes a copy of a body by its Content-Encoding. Returns undefined if this Node does not know
 * the encoding, or if the body is damaged or larger than `LARGEST_BODY`.
 */
export async function decodedBody(body: Buffer, encoding: string | undefined): Promise<Buffer | undefined> {
  const names = (encoding ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  let decoded = body;
  for (const name of names.reverse()) {
    const decode = ownMember(DECODERS, name);
    if (decode === undefined) return undefined;
    try {
      decoded = await decode(decoded, { maxOutputLength: LARGEST_BODY });
    } catch {
      return undefined;
    }
  }
  return decoded;
}

/**
 * Returns a stream that decodes an answer while it arrives, even if the answer is cut off. Returns
 * `none` if the answer is not encoded, and `unknown` if this Node does not know the encoding.
 */
export function streamDecoder(encoding: string | undefined): Transform | 'none' | 'unknown' {
  const name = (encoding ?? 'identity').trim().toLowerCase();
  if (name === '' || name === 'identity') return 'none';
  if (name === 'gzip' || name === 'x-gzip') return zlib.createGunzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH });
  if (name === 'deflate') return zlib.createInflate({ finishFlush: zlib.constants.Z_SYNC_FLUSH });
  if (name === 'br') return zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH });
  const { createZstdDecompress } = zlib as { readonly createZstdDecompress?: () => Transform };
  return name === 'zstd' && createZstdDecompress !== undefined ? createZstdDecompress() : 'unknown';
}
