import type { FileAccess } from '../client/session/file-access.js';
import type { ReportedMention, ReportedReading } from '../client/session/reported-files.js';
import type { SourceReading } from '../filesystem/access/read-source.js';
import { hashText } from '../objects/hashes.js';
import { abridge, chunkText, isLargeText } from '../objects/large-text.js';
import type { FilesystemSource } from '../objects/source.js';
import type { ReportedFile } from './message-schema.js';

/** The most of a text that is kept whole (decision C6), in bytes. */
const WHOLE_TEXT_BYTES = 64 * 1024 * 1024;

/** The reading that a complete text stands for: as if its bytes had been read (decision C1). */
export function readingOfText(text: string, mtimeMs: number): SourceReading {
  const content = text.toWellFormed();
  const fileHash = hashText(content);
  const size = Buffer.byteLength(content);
  if (content.includes('\0')) return { kind: 'binary', fileHash, size, mtimeMs };
  if (!isLargeText(content)) return { kind: 'text', content, fileHash, size, mtimeMs };
  const chunks = size <= WHOLE_TEXT_BYTES ? () => chunkText(content) : undefined;
  return { kind: 'large-text', content: abridge(content).content, length: content.length, chunks, fileHash, size, mtimeMs };
}

/** What a file that a result brought along becomes: a reading, or a mention where its text is not known to be whole. */
export type CarriedFile =
  | { readonly kind: 'reading'; readonly reading: ReportedReading; readonly reachable: boolean }
  | { readonly kind: 'mention'; readonly mention: ReportedMention };

async function reachable(files: FileAccess, source: FilesystemSource, activate: boolean): Promise<CarriedFile> {
  return { kind: 'reading', reading: { source, reading: await files.read(source), activate }, reachable: true };
}

/**
 * Takes up a file that a result brought along (decision C1). Where its source can be reached, that is read and the text that came with it is not used;
 * elsewhere the text counts if it is said to be complete. Throws SourceError for a path outside the roots.
 */
export async function carriedFile(
  files: FileAccess,
  file: ReportedFile,
  path: string,
  now: number,
  activate: boolean,
): Promise<CarriedFile> {
  const { source, location } = await files.locate(path, { mustExist: false });
  if (location.reachable) return reachable(files, source, activate);
  const mtimeMs = Math.floor(file.mtime_ms ?? now);
  if (file.content === undefined || file.complete !== true) return { kind: 'mention', mention: { source, mtimeMs } };
  return { kind: 'reading', reading: { source, reading: readingOfText(file.content, mtimeMs), activate }, reachable: false };
}
