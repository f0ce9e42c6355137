import type { ObjectId, Sha256 } from '../objects/ids.js';
import { keptArgsHash } from '../objects/kept-args.js';
import type { ContentType } from '../objects/object-type.js';
import { type FilesystemSource, parseSource } from '../objects/source.js';
import { shortIds } from '../session/object-reference.js';
import { renderedValue } from './rendered-value.js';

/**
 * The known state of a file's text: only mentioned, read as text, read but not text (decision C2),
 * or confirmed deleted (decision C3).
 */
export type FileState = 'stub' | 'indexed' | 'not-text' | 'deleted';

interface MetadataByType {
  readonly file: {
    /** The path in the agent's view [§5.3]. */
    readonly displayPath: string;
    readonly fileType: string;
    /** UTF-16 units of the stored text (decision A4). */
    readonly charCount: number;
    readonly state: FileState;
    readonly fileHash: Sha256 | null;
    /** Null if there is no content. */
    readonly contentHash: Sha256 | null;
  };
  readonly toolcall: {
    readonly tool: string;
    readonly status: 'ok' | 'fail';
    /** The beginning of its arguments for display; undefined if it has none. */
    readonly args?: string | undefined;
    readonly contentHash: Sha256 | null;
    readonly charCount: number;
    readonly fileRefs: readonly ObjectId[];
    /** Whether the call read one whole file (decision E4). */
    readonly wholeRead: boolean;
  };
}

/**
 * The metadata of a content object, for its pool line and for assembly [§4.1]; never its content.
 */
export type ObjectMetadata<T extends ContentType = ContentType> = {
  readonly [K in ContentType]: { readonly type: K; readonly id: ObjectId } & MetadataByType[K];
}[T];

/** Translates the path of a source to the agent's view [§5.3], and selects visible sources. */
export interface DisplayPaths {
  display(source: FilesystemSource): string;
  /** Returns whether a file is shown. Default: all are. */
  shows?(source: FilesystemSource): boolean;
  /**
   * Whether calls are named by their tool alone. A mask cannot find secrets in the shortened
   * arguments of a longer name.
   */
  readonly plainCalls?: true;
  /**
   * Returns the paths that a relative path may mean in the agent's folder. Without this method a
   * relative path names no file.
   */
  here?(path: string): readonly string[];
  /**
   * Returns the sources that an absolute path may name on this machine. Without this method a path
   * is compared with the paths of all files.
   */
  sourcesAt?(path: string): readonly FilesystemSource[];
}

/** Shows paths as they are stored. */
export const CANONICAL: DisplayPaths = { display: ({ path }) => path };

/**
 * Facts that are stored beside a document and that its metadata needs: a confirmed deletion, and
 * the length of a call's output in UTF-16 units.
 */
export interface MetadataMarks {
  readonly gone?: boolean;
  readonly size?: number;
}

/** A version or head, read by field names. */
type Described = Readonly<Record<string, unknown>>;

function fileState(document: Described, marks: MetadataMarks): FileState {
  if (marks.gone === true) return 'deleted';
  if (document.file_hash === null) return 'stub';
  return document.content_hash === null ? 'not-text' : 'indexed';
}

/** Returns whether a call read one whole file (decision E4). */
function isWholeRead(document: Described): boolean {
  const args = document.args as Described;
  const refs = document.file_refs as readonly unknown[] | undefined;
  const isWhole = args.offset === undefined && args.limit === undefined && keptArgsHash(args) === undefined;
  return document.tool === 'read' && refs?.length === 1 && isWhole;
}

/** Arguments by which a model recognises a call, the most telling first. */
const TELLING = ['path', 'file_path', 'filePath', 'command', 'cmd', 'pattern', 'query', 'url', 'description'];
/** Maximum characters of shown arguments, about ten tokens. */
const ARGS_CHARS = 40;

/** Shortens a path from the left, and any other text from the right, to one line. */
function shortened(text: string): string {
  const [line = ''] = text.trim().split('\n');
  if (line.length <= ARGS_CHARS) return line;
  if (!line.includes('/') || /\s/.test(line)) return `${line.slice(0, ARGS_CHARS - 1).toWellFormed()}…`;
  const end = line.slice(1 - ARGS_CHARS).toWellFormed();
  return `…${end.slice(Math.max(0, end.indexOf('/')))}`;
}

/** Returns the arguments of a call for its line: `args_display`, or its most telling argument. */
function shownArgs({ args, args_display: display }: Described): string | undefined {
  const given = (args ?? {}) as Described;
  if (typeof display === 'string' && display !== '') return shortened(display);
  if (keptArgsHash(given as Parameters<typeof keptArgsHash>[0]) !== undefined) return undefined;
  const texts = [...TELLING.map((name) => given[name]), ...Object.values(given)];
  const text = texts.find((one): one is string => typeof one === 'string' && one.trim() !== '');
  if (text === undefined) return undefined;
  const lines = [given.offset, given.limit].map((one) => (typeof one === 'number' ? String(one) : ''));
  return `${shortened(text)}${lines.join('') === '' ? '' : `:${lines[0] || 1}+${lines[1]}`}`;
}

/**
 * Returns the metadata of a content object [§4.1] from its head or version; undefined for
 * infrastructure, and for a hidden file.
 */
export function metadataOf(
  versionOrHead: object,
  marks: MetadataMarks,
  paths: DisplayPaths,
): ObjectMetadata | undefined {
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
    args: shownArgs(document),
    contentHash,
    charCount: marks.size ?? 0,
    fileRefs: (document.file_refs as readonly ObjectId[] | undefined) ?? [],
    wholeRead: isWholeRead(document),
  };
}

/** Returns the name of an object in the context. */
export type NameOf = (id: ObjectId) => string;

/**
 * Names objects by full ids or, with the short-id option, by their shortest unique prefixes among
 * `ids` (decision D6). Quotes them where E3 requires it.
 */
export function namesOf(ids: Iterable<ObjectId>, short: boolean): NameOf {
  if (!short) return renderedValue;
  const names = shortIds(ids);
  return (id) => renderedValue(names.get(id) ?? id);
}

type LineOf<T extends ContentType> = (
  metadata: ObjectMetadata<T>,
  nameOf: NameOf,
  strict: boolean,
) => readonly string[];

/**
 * The end of a file's line [§4.1]. The wording of the specification makes a deleted file unread,
 * because its file_hash is null (divergence C3).
 */
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

/**
 * Returns the line of a content object in the metadata pool summary [§4.1].
 *
 * @example
 * ```ts
 * metadataLine(metadata, (id) => id.slice(0, 8), false); // id=5f0c... path=src/cart.ts ...
 * ```
 */
export function metadataLine(metadata: ObjectMetadata, nameOf: NameOf, strict: boolean): string {
  return (LINES[metadata.type] as LineOf<ContentType>)(metadata, nameOf, strict).join(' ');
}

/** Returns the chat line that replaces a tool call and its output [§4.1, decision E2]. */
export function referenceLine({ id, tool, status }: ObjectMetadata<'toolcall'>, nameOf: NameOf): string {
  return `toolcall_ref id=${nameOf(id)} tool=${renderedValue(tool)} status=${renderedValue(status)}`;
}

/** Returns the end of a call's line or block in layout `epoch`: its arguments [divergence E9]. */
export const argsMark = (metadata: ObjectMetadata | undefined): string =>
  metadata?.type === 'toolcall' && metadata.args !== undefined ? ` args=${renderedValue(metadata.args)}` : '';

/**
 * Cached pool lines with full ids. The key is the metadata value, which a client keeps while the
 * metadata is unchanged.
 */
const known: Readonly<Record<'strict' | 'plain', WeakMap<ObjectMetadata, string>>> = {
  strict: new WeakMap(),
  plain: new WeakMap(),
};

/**
 * Returns the lines of a pool. Lines are cached, not rendered for each context of a long session.
 */
export function poolLines(
  pool: readonly ObjectMetadata[],
  nameOf: NameOf,
  { strict, shortIds }: { readonly strict: boolean; readonly shortIds: boolean },
): readonly string[] {
  // Short names depend on the other objects, so their lines are not cached.
  if (shortIds) return pool.map((metadata) => metadataLine(metadata, nameOf, strict));
  const lines = known[strict ? 'strict' : 'plain'];
  return pool.map((metadata) => {
    const line = lines.get(metadata) ?? metadataLine(metadata, nameOf, strict);
    lines.set(metadata, line);
    return line;
  });
}
