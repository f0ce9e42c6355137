import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { HeadMarks } from '../../store/head.js';
import type { FileAccess } from '../session/file-access.js';

/** A transaction that has no number yet: younger than any basis. */
export const NOT_YET = Number.POSITIVE_INFINITY;

/** How the agent sees the path of a source [§5.3]. */
export type DisplayPaths = Pick<FileAccess, 'display'>;

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
export function metadataOf(versionOrHead: object, marks: HeadMarks, paths: DisplayPaths): ObjectMetadata | undefined {
  const document = versionOrHead as Described;
  const id = document['xt/id'] as ObjectId;
  const contentHash = document.content_hash as Sha256 | null;
  if (document.type === 'file') {
    const source = parseSource(document.source) as FilesystemSource;
    return {
      type: 'file',
      id,
      displayPath: paths.display(source),
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
 * Metadata of the content objects that a client has met [§3.1], shared by its sessions. Remembers for each session up to which transaction it is
 * complete: as long as only this client writes, nothing needs to be read again.
 */
export class MetadataCache {
  readonly #entries = new Map<ObjectId, ObjectMetadata>();
  readonly #learnedAt = new Map<ObjectId, number>();
  readonly #sources = new Map<ObjectId, FilesystemSource>();
  readonly #files: FileAccess;
  readonly #upto = new Map<SessionId, number>();

  constructor(files: FileAccess) {
    this.#files = files;
  }

  get(id: ObjectId): ObjectMetadata | undefined {
    return this.#entries.get(id);
  }

  /** Nothing of an object is under way any more: what the database says of it counts again. */
  settle(id: ObjectId): void {
    if (this.#learnedAt.get(id) === NOT_YET) this.#learnedAt.set(id, 0);
  }

  /** Whether nothing that is known of an object is younger than a transaction. */
  isAsOf(id: ObjectId, txId: number): boolean {
    return (this.#learnedAt.get(id) ?? 0) <= txId;
  }

  /** The source of a file that was met. */
  source(id: ObjectId): FilesystemSource | undefined {
    return this.#sources.get(id);
  }

  /** Takes in a version or head that is current as of a transaction. */
  learn(versionOrHead: object, marks: HeadMarks, txId: number | undefined): void {
    const metadata = metadataOf(versionOrHead, marks, this.#files);
    if (metadata === undefined) return;
    const known = this.#learnedAt.get(metadata.id) ?? 0;
    if ((txId ?? 0) < known) {
      // What is under way is newer than what the database had; which of them it is in the end, only the database can tell.
      if (known === NOT_YET) this.#upto.clear();
      return;
    }
    this.#entries.set(metadata.id, metadata);
    this.#learnedAt.set(metadata.id, txId ?? 0);
    if (metadata.type === 'file') this.#sources.set(metadata.id, parseSource((versionOrHead as Described).source) as FilesystemSource);
  }

  /** Up to which transaction the objects of a session are known; undefined before the first look at the database. */
  knownUpto(session: SessionId): number | undefined {
    return this.#upto.get(session);
  }

  /** All objects of a session are known as of a transaction. */
  setKnownUpto(session: SessionId, txId: number | undefined): void {
    if (txId !== undefined) this.#upto.set(session, txId);
  }
}
