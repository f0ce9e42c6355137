import type { SourceReading } from '../filesystem/read-source.js';
import type { FileObservation } from '../indexing/decide-file.js';
import type { Json } from '../objects/canonical-json.js';
import { type ObjectVersion, restoreVersion } from '../objects/seal.js';
import type { Put } from '../store/object-store.js';
import type { SessionWrite } from './session-write.js';

/** Format of the records; a reader refuses others. */
const FORMAT = 1;

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

function encodePut({ version, marks, validTime, expect }: Put): Json {
  return {
    version,
    ...(marks === undefined ? {} : { marks }),
    ...(validTime === undefined ? {} : { validTime: validTime.getTime() }),
    ...(expect === undefined ? {} : { expect }),
  } as unknown as Json;
}

function decodePut(value: Json): Put {
  const { version, marks, validTime, expect } = value as JsonMap;
  return {
    version: restoreVersion(version as JsonMap),
    ...(marks === undefined ? {} : { marks: marks as unknown as NonNullable<Put['marks']> }),
    ...(validTime === undefined ? {} : { validTime: new Date(validTime as number) }),
    ...(expect === undefined ? {} : { expect: expect as unknown as NonNullable<Put['expect']> }),
  };
}

/** A write as plain data, for the journal. Nothing is lost: `decodeWrite` gives an equal write back. */
export function encodeWrite(write: SessionWrite): Json {
  return { ...write, format: FORMAT, files: write.files.map(encodeFile), heads: write.heads.map(encodePut) } as unknown as Json;
}

/** Reads a write back; every version's hashes are checked. Throws DocumentError for a damaged one, TypeError for a format that is not known. */
export function decodeWrite(value: Json): SessionWrite {
  const { format, files, heads, call, ...rest } = value as JsonMap;
  if (format !== FORMAT) throw new TypeError(`a journal record has the format ${String(format)}, this version reads ${FORMAT}`);
  const write = { ...rest, files: (files as readonly Json[]).map(decodeFile), heads: (heads as readonly Json[]).map(decodePut) };
  if (call === undefined) return write as unknown as SessionWrite;
  const { version, ...others } = call as JsonMap;
  return {
    ...write,
    call: { ...others, version: restoreVersion(version as JsonMap) as ObjectVersion<'toolcall'> },
  } as unknown as SessionWrite;
}
