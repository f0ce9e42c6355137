import { createHash } from 'node:crypto';
import { type Sha256, sha256 } from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import type { FilesystemAccess } from './access.js';
import { errnoOf, SourceError } from './errors.js';
import { irregularKind, type OpenInside, openInside } from './open-inside.js';

const PIECE_BYTES = 256 * 1024;

/** The hash of as many bytes as the file had when it was opened; undefined when it has fewer by now, or is no regular file. */
async function hashOpen({ handle, stats }: OpenInside, signal: AbortSignal | undefined): Promise<Sha256 | undefined> {
  if (irregularKind(stats) !== undefined) return undefined;
  const size = Number(stats.size);
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size));
  for (let done = 0; done < size; ) {
    signal?.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, size - done), done);
    if (bytesRead === 0) return undefined;
    hash.update(buffer.subarray(0, bytesRead));
    done += bytesRead;
  }
  return sha256(hash.digest('hex'));
}

/**
 * The SHA-256 of a source's bytes (decision A3) in bounded memory, whatever its size: enough to tell that a source still holds the bytes of a known
 * hash, and for nothing else, because it does not ask whether the file was written to meanwhile. Undefined when it cannot be told, for whatever
 * reason: `readSource` then says what is so. Rejects only on an abort of `signal`.
 */
export async function hashSource(access: FilesystemAccess, source: FilesystemSource, signal?: AbortSignal): Promise<Sha256 | undefined> {
  signal?.throwIfAborted();
  if (!access.mounts.isReachable(source.path, source.filesystemId)) return undefined;
  let opened: OpenInside | undefined;
  try {
    opened = await openInside(access.roots, source.path);
    return await hashOpen(opened, signal);
  } catch (error) {
    if (error instanceof SourceError || errnoOf(error) !== undefined) return undefined;
    throw error;
  } finally {
    await opened?.handle.close();
  }
}
