import { posix } from 'node:path';
import type { Sha256 } from './ids.js';
import { type ObjectVersion, sealVersion } from './seal.js';
import type { FilesystemSource } from './source.js';

/** The lower-cased extension of a path's basename without its dot; `none` where there is none (decision A5). */
export function fileType(path: string): string {
  const extension = posix.extname(path);
  return extension.length > 1 ? extension.slice(1).toLowerCase() : 'none';
}

function file(source: FilesystemSource, content: string | null, file_hash: Sha256 | null): ObjectVersion<'file'> {
  const fields = { file_type: fileType(source.path), char_count: content?.length ?? 0 };
  return sealVersion({ type: 'file', source, fields, content, file_hash });
}

/** A file that was read as text [§5.6]; `file_hash` is that of its raw bytes, `content` what we store of it (decisions A3, C6). */
export const indexedFile = (source: FilesystemSource, content: string, fileHash: Sha256): ObjectVersion<'file'> =>
  file(source, content, fileHash);

/** A file that was read but is not UTF-8 text: hashed, without content (decision C2). */
export const nonTextFile = (source: FilesystemSource, fileHash: Sha256): ObjectVersion<'file'> => file(source, null, fileHash);

/** A file that was only mentioned: a discovery stub [§5.6]. */
export const fileStub = (source: FilesystemSource): ObjectVersion<'file'> => file(source, null, null);

/** A file that is confirmed deleted: the same document as a stub; the store's `gone` mark tells them apart (decision C3). */
export const deletedFile = fileStub;
