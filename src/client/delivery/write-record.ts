import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { FileObservation } from '../../indexing/decide-file.js';
import type { Json } from '../../objects/canonical-json.js';
import { type ObjectVersion, restoreVersion } from '../../objects/seal.js';
import { checkedParts, type HeadMarks, type StoredParts, toStored } from '../../store/head.js';
import type { StoredPut } from '../../store/object-store.js';
import { defined } from '../../values/defined.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { SessionWrite } from './session-write.js';

/** Format of the records, and the older ones that are still read; a reader refuses others. */
const FORMAT = 2;
const READ: ReadonlySet<unknown> = new Set([1, FORMAT]);

type JsonMap = Readonly<Record<string, Json>>;

function encodeFile(file: FileObservation): Json {
  if (file.kind === 'mention' || file.reading.kind !== 'large-text') return file as unknown as Json;
  const { chunks, ...reading } = file.reading;
  return { ...file, reading: { ...reading, chunks: chunks === undefined ? null : [...chunks()] } } as unknown as Json;
}

function decodeFile(value: Json): FileObservation {
  const file = value as unknown as FileObservation;
  if (file.kind === 'mention' || file.reading.kind !== 'large-text') return file;
  const stored = (file.reading as unknown as { readonly chunks: readonly string[] | null }).chunks;
  const reading: SourceReading = { ...file.reading, chunks: stored === null ? undefined : () => stored };
  return { ...file, reading };
}

function encodePut({ head, texts, validTime, expect }: StoredPut): Json {
  return {
    head,
    ...(texts.length === 0 ? {} : { texts }),
    ...(validTime === undefined ? {} : { validTime: validTime.getTime() }),
    ...defined({ expect }),
  } as unknown as Json;
}

/** Format 1 held whole versions, with every turn of the chat. */
function partsOf({ version, marks, head, texts }: JsonMap): StoredParts {
  if (head === undefined) return toStored(restoreVersion(version as JsonMap), marks as unknown as HeadMarks | undefined);
  return checkedParts({ head: head as StoredDocument, texts: (texts ?? []) as unknown as readonly StoredDocument[] });
}

function decodePut(value: Json): StoredPut {
  const { validTime, expect, ...parts } = value as JsonMap;
  return {
    ...partsOf(parts),
    ...(validTime === undefined ? {} : { validTime: new Date(validTime as number) }),
    ...(expect === undefined ? {} : { expect: expect as unknown as NonNullable<StoredPut['expect']> }),
  };
}

/** A write as plain data, for the journal. Nothing is lost: `decodeWrite` gives an equal write back. */
export function encodeWrite(write: SessionWrite): Json {
  return { ...write, format: FORMAT, files: write.files.map(encodeFile), heads: write.heads.map(encodePut) } as unknown as Json;
}

/** Reads a write back; every version's hashes are checked. Throws DocumentError for a damaged one, TypeError for a format that is not known. */
export function decodeWrite(value: Json): SessionWrite {
  const { format, files, heads, call, ...rest } = value as JsonMap;
  if (!READ.has(format))
    throw new TypeError(`a journal record has the format ${String(format)}, this version reads ${[...READ].join(' and ')}`);
  const write = { ...rest, files: (files as readonly Json[]).map(decodeFile), heads: (heads as readonly Json[]).map(decodePut) };
  if (call === undefined) return write as unknown as SessionWrite;
  const { version, ...others } = call as JsonMap;
  return {
    ...write,
    call: { ...others, version: restoreVersion(version as JsonMap) as ObjectVersion<'toolcall'> },
  } as unknown as SessionWrite;
}
