import type { ObjectId, Sha256 } from '../objects/ids.js';
import { keptArgsHash } from '../objects/kept-args.js';
import type { ContentType } from '../objects/object-type.js';
import { type FilesystemSource, parseSource } from '../objects/source.js';
import { shortIds } from '../session/object-reference.js';
import { renderedValue } from './rendered-value.js';

/** What is known of a file's text: only mentioned, read as text, read but no text (decision C2), confirmed deleted (decision C3). */
export type FileState = 'stub' | 'indexed' | 'not-text' | 'deleted';

interface MetadataByType {
  readonly file: {
    /** The path as the agent sees it [§5.3]. */
    readonly displayPath: string;
    readonly fileType: string;
    /** UTF-16 units of the stored text (decision A4). */
    readonly charCount: number;
    readonly state: FileState;
    readonly fileHash: Sha256 | null;
    /** Null: there is no content. */
    readonly contentHash: Sha256 | null;
  };
  readonly toolcall: {
    readonly tool: string;
    readonly status: 'ok' | 'fail';
    readonly contentHash: Sha256 | null;
    readonly charCount: number;
    readonly fileRefs: readonly ObjectId[];
    /** The call read one file from beginning to end (decision E4). */
    readonly wholeRead: boolean;
  };
}

/** What a pool line says of a content object and what assembly decides by [§4.1]; never its content. */
export type ObjectMetadata<T extends ContentType = ContentType> = {
  readonly [K in ContentType]: { readonly type: K; readonly id: ObjectId } & MetadataByType[K];
}[T];

/** How the agent sees the path of a source [§5.3], and which sources it sees. */
export interface DisplayPaths {
  display(source: FilesystemSource): string;
  /** Whether a file is shown; all are where this is left out. */
  shows?(source: FilesystemSource): boolean;
  /** The paths that a relative one may stand for where it is given; a relative path names nothing where this is left out. */
  here?(path: string): readonly string[];
}

/** What the store keeps beside a document that its metadata depends on: a confirmed deletion, and the length of a call's output in UTF-16 units. */
export interface MetadataMarks {
  readonly gone?: boolean;
  readonly size?: number;
}

/** A version or head, read by its fields. */
type Described = Readonly<Record<string, unknown>>;

function fileState(document: Described, marks: MetadataMarks): FileState {
  if (marks.gone === true) return 'deleted';
  if (document.file_hash === null) return 'stub';
  return document.content_hash === null ? 'not-text' : 'indexed';
}

/** Whether a call read one file from beginning to end (decision E4). */
function isWholeRead(document: Described): boolean {
  const args = document.args as Described;
  const refs = document.file_refs as readonly unknown[] | undefined;
  const isWhole = args.offset === undefined && args.limit === undefined && keptArgsHash(args) === undefined;
  return document.tool === 'read' && refs?.length === 1 && isWhole;
}

/** The metadata of a content object [§4.1], from its head or its version; undefined for infrastructure, and for a file that is not shown. */
export function metadataOf(versionOrHead: object, marks: MetadataMarks, paths: DisplayPaths): ObjectMetadata | undefined {
  const document = versionOrHead as Described;
  const id = document['xt/id'] as ObjectId;
  const contentHash = document.content_hash as Sha256 | null;
  if (document.type === 'file') {
    const source = parseSource(document.source) as FilesystemSource;
    if (paths.shows?.(source) === false) return undefined;
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
    status: document.status as ObjectMetadata<'toolcall'>['status'],
    contentHash,
    charCount: marks.size ?? 0,
    fileRefs: (document.file_refs as readonly ObjectId[] | undefined) ?? [],
    wholeRead: isWholeRead(document),
  };
}

/** How an object is named in the context. */
export type NameOf = (id: ObjectId) => string;

/** Full ids, or with the short-id option the shortest prefixes that are unique among the given ids (decision D6); quoted where E3 asks for it. */
export function namesOf(ids: Iterable<ObjectId>, short: boolean): NameOf {
  if (!short) return renderedValue;
  const names = shortIds(ids);
  return (id) => renderedValue(names.get(id) ?? id);
}

type LineOf<T extends ContentType> = (metadata: ObjectMetadata<T>, nameOf: NameOf, strict: boolean) => readonly string[];

/** How a file's line ends [§4.1]; by the letter a deleted file is unread, since its file_hash is null (divergence C3). */
const FILE_ENDINGS: Readonly<Record<FileState, (charCount: number, strict: boolean) => string>> = {
  stub: () => '[unread]',
  indexed: (charCount) => `char_count=${charCount}`,
  'not-text': (charCount) => `char_count=${charCount}`,
  deleted: (_charCount, strict) => (strict ? '[unread]' : '[deleted]'),
};

const LINES: { readonly [T in ContentType]: LineOf<T> } = {
  file: ({ id, displayPath, fileType, charCount, state }, nameOf, strict) => [
    `id=${nameOf(id)}`,
    'type=file',
    `path=${renderedValue(displayPath)}`,
    `file_type=${renderedValue(fileType)}`,
    FILE_ENDINGS[state](charCount, strict),
  ],
  toolcall: ({ id, tool, status }, nameOf) => [
    `id=${nameOf(id)}`,
    'type=toolcall',
    `tool=${renderedValue(tool)}`,
    `status=${renderedValue(status)}`,
  ],
};

/** The line of a content object in the metadata pool summary [§4.1]. */
export function metadataLine(metadata: ObjectMetadata, nameOf: NameOf, strict: boolean): string {
  return (LINES[metadata.type] as LineOf<ContentType>)(metadata, nameOf, strict).join(' ');
}

/** The line that stands in the chat for a tool call and its output [§4.1, decision E2]. */
export function referenceLine({ id, tool, status }: ObjectMetadata<'toolcall'>, nameOf: NameOf): string {
  return `toolcall_ref id=${nameOf(id)} tool=${renderedValue(tool)} status=${renderedValue(status)}`;
}

/** Pool lines under full ids, by what they are the line of: a client keeps the metadata of an object as long as nothing of it changes. */
const known: Readonly<Record<'strict' | 'plain', WeakMap<ObjectMetadata, string>>> = { strict: new WeakMap(), plain: new WeakMap() };

/** The lines of a pool; those of a long session are made once, not for each of its contexts. */
export function poolLines(
  pool: readonly ObjectMetadata[],
  nameOf: NameOf,
  { strict, shortIds }: { readonly strict: boolean; readonly shortIds: boolean },
): readonly string[] {
  // Short names depend on what else there is.
  if (shortIds) return pool.map((metadata) => metadataLine(metadata, nameOf, strict));
  const lines = known[strict ? 'strict' : 'plain'];
  return pool.map((metadata) => {
    const line = lines.get(metadata) ?? metadataLine(metadata, nameOf, strict);
    lines.set(metadata, line);
    return line;
  });
}
