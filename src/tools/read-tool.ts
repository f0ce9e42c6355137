import * as z from 'zod';
import type { ObjectMetadata } from '../assembly/metadata.js';
import type { LocatedFile } from '../client/file-access.js';
import type { LoadedObject } from '../client/session/find-object.js';
import { SourceError, type SourceErrorCode } from '../filesystem/access/errors.js';
import { hasText, type ReadingWithText, type SourceReading } from '../filesystem/access/read-source.js';
import type { ObjectId } from '../objects/ids.js';
import type { FilesystemSource } from '../objects/source.js';
import { defined } from '../values/defined.js';
import { defineTool, type Performed, type ToolSettings, type Work } from './define-tool.js';
import { continuation, frame, frameSize, headerLine, headerValue, lineRange, remaining, shownId } from './framing.js';
import { notReadable } from './not-readable.js';
import { type PageStart, pageOfPieces } from './page.js';
import { requireObject } from './require-object.js';
import { type Tool, ToolError } from './tool.js';

function describe(
  { version }: LoadedObject,
  work: Work,
): { readonly kind: string; readonly fields: Readonly<Record<string, string>> } {
  const id = shownId(version['xt/id'], work);
  if (version.type === 'file')
    return { kind: 'file', fields: { id, path: work.client.files.display(version.source as FilesystemSource) } };
  if (version.type === 'toolcall')
    return { kind: 'toolcall', fields: { id, tool: version.tool, status: version.status } };
  throw new ToolError('unknown-object', `${headerValue(id)} is part of the session itself.`, {
    next: 'Use context to see it.',
  });
}

function requireText(loaded: LoadedObject, id: ObjectId, at: string): void {
  if (loaded.version.content !== null) return;
  if (loaded.gone)
    throw new ToolError('not-found', `the file ${headerValue(id)} is deleted${at}.`, {
      next: 'Give the version of an earlier transaction.',
    });
  const unread = loaded.version.type === 'file' && loaded.version.file_hash === null;
  throw new ToolError(
    'not-text',
    unread ? `the file ${headerValue(id)} was not read yet${at}.` : `the object ${headerValue(id)} holds no text${at}.`,
  );
}

/** The note for a file whose source is unreachable. Its last version stays [§5.9]. */
const ORPHANED = '[The file cannot be read now: this is its last stored version.]';

/** The version of an object that is wanted, and where the page starts. */
interface Wanted {
  /** The transaction of an older version. Undefined for the newest version. */
  readonly version?: number | undefined;
  readonly start: PageStart;
}

/**
 * Returns a page of an object's stored text, in the newest version or as of a transaction. `note`
 * is added below the page.
 */
async function readStored(
  id: ObjectId,
  { version, start, note }: Wanted & { readonly note?: string },
  work: Work,
): Promise<Performed> {
  const loaded = await work.session.load(id, version === undefined ? {} : { version });
  const at = version === undefined ? '' : ` at version ${version}`;
  if (loaded === undefined)
    throw new ToolError('not-found', `the object ${headerValue(id)} has nothing stored${at}.`, {
      next: 'Omit version for the newest one.',
    });
  requireText(loaded, id, at);
  const { kind, fields } = describe(loaded, work);
  const call = { id: shownId(id, work), ...defined({ version }) };
  const text = (await loaded.wholeText()) ?? '';
  const limits = remaining(work.limits, frameSize(kind, { ...fields, ...call }) + (note?.length ?? 0), 3);
  const page = pageOfPieces([text], { start, limits, name: headerValue(id) });
  const header = headerLine(kind, { ...fields, version, lines: lineRange(page), chars: page.totalChars });
  return {
    content: page.text,
    show: () => frame(header, page.text === '' ? '(empty)' : page.text, [note, continuation(page, 'read', call)]),
    meta: {
      id,
      chars: page.totalChars,
      lines: page.totalLines,
      whole: page.whole,
      ...defined({ next: page.next }),
    },
  };
}

/** Where a page of a file starts, and how the next call can name the file. */
interface Shown {
  readonly start: PageStart;
  /** The arguments of the next call that name the file. */
  readonly call: { readonly path?: string; readonly id?: string; readonly version?: number };
}

/**
 * Returns the text of a reading in pieces. If only head and tail are kept, returns those
 * (decision C6).
 */
function pieces(reading: ReadingWithText): Iterable<string> {
  if (reading.kind === 'text') return [reading.content];
  return reading.chunks?.() ?? [reading.content];
}

const KEPT_NO_FURTHER = '[The file is over 64 MiB: only its beginning and end are kept, and shown here.]';

/**
 * Reads a file from its source and shows a page of it. The reading is indexed [§5.6, decisions C1,
 * D8].
 */
async function readFile(file: LocatedFile, wanted: Shown, work: Work): Promise<Performed> {
  return showReading({ file, reading: await work.client.files.read(file.source, work.signal) }, wanted, work);
}

/** A file and its reading. */
interface FileReading {
  readonly file: LocatedFile;
  readonly reading: SourceReading;
}

/** Shows a page of a reading. The reading is passed on to be indexed. */
function showReading({ file, reading: readable }: FileReading, wanted: Shown, work: Work): Performed {
  const name = file.location.shown;
  if (!hasText(readable)) throw notReadable(readable, file, name);
  const abridged = readable.kind === 'large-text' && readable.chunks === undefined;
  const fields = { id: shownId(file.id, work), path: file.display };
  const limits = remaining(
    work.limits,
    frameSize('file', { ...fields, ...wanted.call }) + (abridged ? KEPT_NO_FURTHER.length + 1 : 0),
    3,
  );
  const page = pageOfPieces(pieces(readable), { start: wanted.start, limits, name });
  const whole = page.whole && !abridged;
  const header = headerLine('file', { ...fields, lines: lineRange(page), chars: page.totalChars });
  const body = page.totalChars === 0 ? '(empty file)' : page.text;
  const notes = [abridged ? KEPT_NO_FURTHER : undefined, continuation(page, 'read', wanted.call)];
  return {
    content: page.text,
    readings: [{ source: file.source, reading: readable, activate: whole || work.strict }],
    show: () => frame(header, body === '' ? '(empty line)' : body, notes),
    meta: {
      id: file.id,
      path: file.display,
      file_hash: readable.fileHash,
      chars: page.totalChars,
      lines: page.totalLines,
      whole,
      ...defined({ next: page.next }),
    },
  };
}

const OUT_OF_REACH: ReadonlySet<SourceErrorCode> = new Set(['loop', 'no-permission', 'unreachable', 'io']);

/**
 * Reads the source of a known file. Undefined if the source is unreachable. The last stored version
 * is then used.
 */
async function readSourceOf({ displayPath, state }: ObjectMetadata<'file'>, { client, signal }: Work) {
  const isStored = state === 'indexed';
  try {
    const file = await client.files.locate(displayPath, { mustExist: false });
    const reading = await client.files.read(file.source, signal);
    return isStored && reading.kind === 'unreachable' && reading.reason !== 'outside-roots'
      ? undefined
      : { file, reading };
  } catch (error) {
    if (isStored && error instanceof SourceError && OUT_OF_REACH.has(error.code)) return undefined;
    throw error;
  }
}

/**
 * Reads an object that is named by id, prefix or display path (decision D8). A file is read from
 * its source, a tool call from the store, and an older version of either from the store.
 */
async function readObject(reference: string, wanted: Wanted, work: Work): Promise<Performed> {
  const { version, start } = wanted;
  const id = await requireObject(reference, work);
  const metadata = work.session.metadata(id);
  if (version !== undefined || metadata?.type !== 'file' || metadata.state === 'deleted')
    return readStored(id, wanted, work);
  const source = await readSourceOf(metadata, work);
  if (source === undefined) return readStored(id, { start, note: ORPHANED }, work);
  return showReading(source, { start, call: { id: shownId(id, work) } }, work);
}

const SHAPE = {
  path: z.string().min(1).optional().describe('File to read'),
  id: z.string().min(1).optional().describe('Object to read instead of a path: file or tool call'),
  offset: z.int().min(1).optional().describe('First line, from 1 (default 1)'),
  limit: z.int().min(1).optional().describe('Number of lines (default: as many as fit)'),
  column: z.int().min(1).optional().describe('First character within that line (default 1)'),
  version: z.int().min(0).optional().describe('Transaction of an older version (default newest)'),
};

/** The tool `read` [§3.3, decision D8]. */
export function readTool(settings: ToolSettings): Tool {
  return defineTool({
    name: 'read',
    description:
      'Read a text file, or by id: old tool output (nothing runs again), earlier versions. Shows up to ' +
      `${settings.limits.lines} lines / ${settings.limits.chars} characters; continue with offset. A file read ` +
      'whole joins the active set of the session.',
    shape: SHAPE,
    annotations: { readOnlyHint: true, openWorldHint: false },
    perform: async ({ path, id, offset = 1, limit, column = 1, version }, work) => {
      const start = { offset, limit, column };
      const wanted = { version, start };
      if (id !== undefined) return readObject(id, wanted, work);
      if (path === undefined)
        throw new ToolError('invalid-arguments', 'read needs a path or an id.', {
          next: 'For example: read path=README.md',
        });
      const file = await work.client.files.locate(path, { mustExist: false });
      if (version !== undefined) return readStored(file.id, wanted, work);
      return readFile(file, { start, call: { path } }, work);
    },
  })(settings);
}
