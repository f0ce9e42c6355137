import type { ObjectMetadata } from '../assembly/metadata.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';
import { type FilesystemSource, parseSource } from '../objects/source.js';
import type { HeadMarks } from '../store/head.js';
import type { FileAccess } from './file-access.js';

/** A version or head, read by its fields. */
type Described = Readonly<Record<string, unknown>>;

type FileMetadata = Extract<ObjectMetadata, { type: 'file' }>;
type ToolcallMetadata = Extract<ObjectMetadata, { type: 'toolcall' }>;

function fileState(document: Described, marks: HeadMarks): FileMetadata['state'] {
  if (marks.gone === true) return 'deleted';
  if (document.file_hash === null) return 'stub';
  return document.content_hash === null ? 'not-text' : 'indexed';
}

/** A call that read one file from beginning to end (decision E4). */
function isWholeRead(document: Described): boolean {
  const args = document.args as Readonly<Record<string, unknown>>;
  const refs = document.file_refs as readonly unknown[] | undefined;
  return document.tool === 'read' && refs?.length === 1 && args.offset === undefined && args.limit === undefined;
}

/** The metadata of a content object [§4.1], from its head or its version; undefined for infrastructure. */
export function metadataOf(versionOrHead: object, marks: HeadMarks, files: FileAccess): ObjectMetadata | undefined {
  const document = versionOrHead as Described;
  const id = document['xt/id'] as ObjectId;
  const contentHash = document.content_hash as Sha256 | null;
  if (document.type === 'file') {
    const source = parseSource(document.source) as FilesystemSource;
    return {
      type: 'file',
      id,
      displayPath: files.display(source),
      fileType: String(document.file_type),
      charCount: Number(document.char_count),
      state: fileState(document, marks),
      fileHash: document.file_hash as Sha256 | null,
      contentHash,
    };
  }
  if (document.type !== 'toolcall') return undefined;
  return {
    type: 'toolcall',
    id,
    tool: String(document.tool),
    status: document.status as ToolcallMetadata['status'],
    contentHash,
    charCount: marks.size ?? 0,
    fileRefs: (document.file_refs as readonly ObjectId[] | undefined) ?? [],
    wholeRead: isWholeRead(document),
  };
}

/**
 * Metadata of the content objects that a client has met [§3.1], shared by its sessions. Knows up to which transaction it is complete: as long as
 * only this client writes, it needs no reading; once a foreign transaction slips in between, `isCurrent` says no and it is refreshed.
 */
export class MetadataCache {
  readonly #entries = new Map<ObjectId, ObjectMetadata>();
  readonly #sources = new Map<ObjectId, FilesystemSource>();
  readonly #files: FileAccess;
  #upto: number | undefined;

  constructor(files: FileAccess) {
    this.#files = files;
  }

  get(id: ObjectId): ObjectMetadata | undefined {
    return this.#entries.get(id);
  }

  /** The source of a file that was met. */
  source(id: ObjectId): FilesystemSource | undefined {
    return this.#sources.get(id);
  }

  learn(versionOrHead: object, marks: HeadMarks): void {
    const metadata = metadataOf(versionOrHead, marks, this.#files);
    if (metadata === undefined) return;
    this.#entries.set(metadata.id, metadata);
    if (metadata.type === 'file') this.#sources.set(metadata.id, parseSource((versionOrHead as Described).source) as FilesystemSource);
  }

  /** Whether nothing foreign was written since the cache was last complete. */
  isCurrent(txId: number | undefined): boolean {
    return txId !== undefined && this.#upto === txId;
  }

  /** A transaction of this client was committed and its versions learned. */
  advance(txId: number): void {
    if (this.#upto !== undefined && txId === this.#upto + 1) this.#upto = txId;
  }

  /** Everything up to a transaction is known. */
  completeAt(txId: number | undefined): void {
    this.#upto = txId;
  }
}
