import type { ObjectMetadata } from '../assembly/metadata.js';
import type { LoadedObject } from '../client/session/load-object.js';
import { SourceError, type SourceErrorCode } from '../filesystem/access/errors.js';
import type { ObjectId } from '../objects/ids.js';
import type { FilesystemSource } from '../objects/source.js';
import { defined } from '../values/defined.js';
import type { Performed, Work } from './define-tool.js';
import { continuation, frame, frameSize, headerLine, lineRange, room } from './framing.js';
import { type PageStart, pageOfPieces } from './page.js';
import { showReading } from './read-file.js';
import { requireObject } from './require-object.js';
import { shownId } from './shown-id.js';
import { ToolError } from './tool-error.js';

function describe({ version }: LoadedObject, work: Work): { readonly kind: string; readonly fields: Readonly<Record<string, string>> } {
  const id = shownId(version['xt/id'], work);
  if (version.type === 'file') return { kind: 'file', fields: { id, path: work.client.files.display(version.source as FilesystemSource) } };
  if (version.type === 'toolcall') return { kind: 'toolcall', fields: { id, tool: version.tool, status: version.status } };
  throw new ToolError('unknown-object', `${id} is part of the session itself.`, 'Use context to see it.');
}

function requireText(loaded: LoadedObject, id: ObjectId, at: string): void {
  if (loaded.version.content !== null) return;
  if (loaded.gone) throw new ToolError('not-found', `the file ${id} is deleted${at}.`, 'Give the version of an earlier transaction.');
  const unread = loaded.version.type === 'file' && loaded.version.file_hash === null;
  throw new ToolError('not-text', unread ? `the file ${id} was not read yet${at}.` : `the object ${id} holds no text${at}.`);
}

/** The last version of a file stays when its source is out of reach [§5.9]. */
const ORPHANED = '[The file cannot be read now: this is its last stored version.]';

/** A page of what is stored of an object, now or as of a transaction. */
export async function readStored(
  id: ObjectId,
  version: number | undefined,
  start: PageStart,
  work: Work,
  note?: string,
): Promise<Performed> {
  const loaded = await work.session.load(id, version === undefined ? {} : { version });
  const at = version === undefined ? '' : ` at version ${version}`;
  if (loaded === undefined)
    throw new ToolError('not-found', `the object ${id} has nothing stored${at}.`, 'Leave version out for the newest.');
  requireText(loaded, id, at);
  const { kind, fields } = describe(loaded, work);
  const call = { id: shownId(id, work), ...defined({ version }) };
  const text = (await loaded.wholeText()) ?? '';
  const page = pageOfPieces([text], start, room(work.limits, frameSize(kind, { ...fields, ...call }) + (note?.length ?? 0), 3), id);
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

const OUT_OF_REACH: ReadonlySet<SourceErrorCode> = new Set(['loop', 'no-permission', 'unreachable', 'io']);

/** The source of a known file, read; undefined when it is out of reach and its last version has to serve. */
async function readSourceOf({ displayPath, state }: ObjectMetadata<'file'>, { client, signal }: Work) {
  const isStored = state === 'indexed';
  try {
    const file = await client.files.locate(displayPath, { mustExist: false });
    const reading = await client.files.read(file.source, signal);
    return isStored && reading.kind === 'unreachable' && reading.reason !== 'outside-roots' ? undefined : { file, reading };
  } catch (error) {
    if (isStored && error instanceof SourceError && OUT_OF_REACH.has(error.code)) return undefined;
    throw error;
  }
}

/**
 * Reads an object by id, prefix or display path (decision D8): a tool call from what is stored, a file from its source, or as it was at an
 * older transaction.
 */
export async function readObject(reference: string, version: number | undefined, start: PageStart, work: Work): Promise<Performed> {
  const id = await requireObject(reference, work);
  const metadata = work.session.metadata(id);
  if (version !== undefined || metadata?.type !== 'file' || metadata.state === 'deleted') return readStored(id, version, start, work);
  const source = await readSourceOf(metadata, work);
  if (source === undefined) return readStored(id, undefined, start, work, ORPHANED);
  const { file, reading } = source;
  return showReading(file, reading, { start, call: { id: shownId(id, work) } }, work);
}
