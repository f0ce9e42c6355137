import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { FileObservation } from '../../indexing/decide-file.js';
import type { FilesystemSource } from '../../objects/source.js';
import { deletedFile, fileStub, indexedFile, nonTextFile } from '../../objects/versions.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import { fileObjectId } from '../session/file-access.js';
import { callMarks } from './plan-write.js';
import type { MarkedVersion, SessionWrite } from './session-write.js';

type OfReading = (reading: never, source: FilesystemSource, known: boolean) => MarkedVersion | undefined;

const BY_READING: Readonly<Record<SourceReading['kind'], OfReading>> = {
  text: (reading: Extract<SourceReading, { kind: 'text' }>, source) => ({
    version: indexedFile(source, reading.content, reading.fileHash),
    marks: {},
  }),
  'large-text': (reading: Extract<SourceReading, { kind: 'large-text' }>, source) => ({
    version: indexedFile(source, reading.content, reading.fileHash),
    marks: {},
    ...(reading.chunks === undefined ? {} : { wholeText: () => [...(reading.chunks?.() ?? [])].join('') }),
  }),
  binary: (reading: Extract<SourceReading, { kind: 'binary' }>, source) => ({ version: nonTextFile(source, reading.fileHash), marks: {} }),
  missing: (_reading, source, known) => (known ? { version: deletedFile(source), marks: { gone: true } } : undefined),
  unreachable: () => undefined,
  'not-regular': () => undefined,
};

function ofFile(file: FileObservation, cache: MetadataCache): MarkedVersion | undefined {
  const known = cache.get(fileObjectId(file.source)) !== undefined;
  if (file.kind === 'mention') return known ? undefined : { version: fileStub(file.source), marks: {} };
  return BY_READING[file.reading.kind](file.reading as never, file.source, known);
}

/**
 * What a write's objects are as far as this client can tell before the database has decided (decision F4): its own reads see what it acknowledged. A
 * mention may turn out to be a file that others read already; the database's answer corrects it.
 */
export function localVersions(write: SessionWrite, cache: MetadataCache): readonly MarkedVersion[] {
  const files = write.files.flatMap((file) => ofFile(file, cache) ?? []);
  if (write.call === undefined) return files;
  const { version, wholeText } = write.call;
  return [...files, { version, marks: callMarks(write.call), ...(wholeText === undefined ? {} : { wholeText: () => wholeText.text }) }];
}
