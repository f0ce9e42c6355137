import * as z from 'zod';
import type { LocatedFile } from '../client/file-access.js';
import { unreachableError } from '../filesystem/access/access.js';
import { hasText, type ReadingWithText, type SourceReading } from '../filesystem/access/read-source.js';
import { changeSource, type Expected } from '../filesystem/access/write-source.js';
import { type FoundSecrets, marksIn, STORED_MARK } from '../redaction/stored-marks.js';
import { requireInWorkspace } from './agent-sandbox.js';
import { applyEdits, type Edit, type EditedText } from './apply-edits.js';
import { type ChangedSince, changedSince } from './changed-since.js';
import { defineTool, type Performed, type Work } from './define-tool.js';
import { headerLine, linesIn, shownId, shownName } from './framing.js';
import { inFormOf } from './line-ends.js';
import { notReadable } from './not-readable.js';
import { ToolError } from './tool.js';

interface Written {
  readonly text: string;
  readonly fileHash: string;
  /** The answer, without its header. */
  readonly said: string;
  readonly effect: string;
  readonly meta?: Performed['meta'];
}

/**
 * Builds the answer of a tool that wrote a file. The file is indexed from disk and not activated,
 * because the agent did not read it [§5.6]. This runs while the file is locked, so that it reads
 * the version that this call wrote.
 */
async function performed(
  file: LocatedFile,
  { text, fileHash, said, effect, meta }: Written,
  work: Work,
): Promise<Performed> {
  work.session.seen.wrote(file.id, fileHash);
  const header = headerLine('file', { id: shownId(file.id, work), path: file.display, chars: text.length });
  return {
    content: said,
    readings: [{ source: file.source, reading: await work.client.files.read(file.source), activate: false }],
    show: () => `${header}\n${said}`,
    meta: { id: file.id, path: file.display, file_hash: fileHash, chars: text.length, ...meta },
    effect,
  };
}

/**
 * Rejects a change of a file that differs from what the agent last saw. Each difference is rejected
 * once.
 *
 * @throws {ToolError} `changed-since`
 */
function requireSeen(changed: ChangedSince | undefined): void {
  if (changed === undefined) return;
  const { message, next, reading } = changed;
  throw new ToolError('changed-since', message, { next, learned: { readings: [reading] } });
}

/**
 * Returns the state that the file must have when it is locked. Undefined for an unreadable file,
 * for which the write itself fails.
 */
function expectedAfter(reading: SourceReading): Expected | undefined {
  if (reading.kind === 'missing') return 'absent';
  return 'fileHash' in reading ? reading.fileHash : undefined;
}

/**
 * Returns the text that a write replaces. Of a file over 64 MiB, only head and tail are known.
 * Empty if the file is not text.
 */
function replacedText(reading: SourceReading): string {
  if (reading.kind === 'large-text' && reading.chunks !== undefined) return [...reading.chunks()].join('');
  return reading.kind === 'text' || reading.kind === 'large-text' ? reading.content : '';
}

/**
 * Returns a text with the file's secrets in place of their marks. A mark is never written to a
 * file.
 * @throws {ToolError} `masked` – the file has no secret with this mark
 */
function withoutMarks(text: string, before: string, { path, work }: { readonly path: string; readonly work: Work }) {
  if (marksIn(text).length === 0) return text;
  const found: FoundSecrets = new Map();
  work.client.mask.text(before, found);
  return text.replace(STORED_MARK, (mark) => {
    const secret = found.get(mark);
    if (secret !== undefined) return secret;
    throw new ToolError('masked', `${shownName(path)} holds no secret with the mark ${mark}. Nothing was written.`, {
      next: 'A mark stands for a hidden secret and is never written. Leave that part of the file as it is.',
    });
  });
}

async function write(path: string, given: string, work: Work): Promise<Performed> {
  const { client, session, signal } = work;
  const file = await client.files.locate(path, { mustExist: false });
  if (!file.location.reachable) throw unreachableError(path);
  await requireInWorkspace(file.location.path, shownName(path), work);
  const before = await client.files.read(file.source, signal);
  requireSeen(changedSince(session.seen, { source: file.source, name: path }, before));
  const replaced = replacedText(before);
  const text = inFormOf(replaced, withoutMarks(given, replaced, { path, work }));
  signal.throwIfAborted();
  return changeSource(
    client.files.access.roots,
    { path: file.location.path, shown: path, signal },
    async (writeLocked) => {
      // The write fails if the file has changed since `before`, because this text was made without
      // that change.
      const { created, fileHash } = await writeLocked(text, expectedAfter(before));
      const lines = text === '' ? 0 : linesIn(text);
      const kept = text === given ? '' : ' The line endings and byte order mark that it had are kept.';
      const said =
        `${created ? 'Created' : 'Overwrote'} ${shownName(path)}: ${lines} ` +
        `${lines === 1 ? 'line' : 'lines'}, ${text.length} characters.${kept}`;
      return performed(
        file,
        { text, fileHash, said, effect: `The file ${shownName(path)} was written.`, meta: { created } },
        work,
      );
    },
  );
}

/** The tool `write`: replaces a whole file atomically, and indexes it from disk. */
export const writeTool = defineTool({
  name: 'write',
  description: 'Create a file or replace all of it, line endings kept. Use edit to change a part.',
  shape: {
    path: z.string().min(1).describe('File to write; missing folders are made'),
    content: z.string().describe('The whole new text'),
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  perform: ({ path, content }, work) => write(path, content, work),
});

function wholeText(reading: ReadingWithText, path: string): string {
  if (reading.kind === 'text') return reading.content;
  if (reading.chunks === undefined)
    throw new ToolError('not-text', `${shownName(path)} is over 64 MiB and cannot be edited.`, {
      next: 'Change it with another program.',
    });
  return [...reading.chunks()].join('');
}

function linesText({ changed }: EditedText): string {
  const ranges = changed
    .slice(0, 20)
    .map(({ firstLine, lastLine }) => (firstLine === lastLine ? `${firstLine}` : `${firstLine}-${lastLine}`));
  return (
    `${changed.length === 1 && ranges[0]?.includes('-') !== true ? 'line' : 'lines'} ` +
    `${ranges.join(', ')}${changed.length > 20 ? ', ...' : ''}`
  );
}

async function edit(path: string, edits: readonly Edit[], work: Work): Promise<Performed> {
  const { client, session, signal } = work;
  const file = await client.files.locate(path, { mustExist: false });
  await requireInWorkspace(file.location.path, shownName(path), work);
  const read = async () => {
    const reading = await client.files.read(file.source, signal);
    if (hasText(reading)) return reading;
    throw notReadable(reading, file, path);
  };
  // A missing file fails here, before a folder is created for it.
  if (!file.location.exists) await read();
  return changeSource(
    client.files.access.roots,
    { path: file.location.path, shown: path, signal },
    async (writeLocked) => {
      const before = await read();
      requireSeen(changedSince(session.seen, { source: file.source, name: path }, before));
      const present = wholeText(before, path);
      const plain = (text: string): string => withoutMarks(text, present, { path, work });
      const meant = edits.map(({ oldText, newText }) => ({ oldText: plain(oldText), newText: plain(newText) }));
      const edited = applyEdits(present, meant, shownName(path));
      const { text } = edited;
      signal.throwIfAborted();
      // The write fails if a program changed the file since it was read. Other programs need not
      // use our lock.
      const { fileHash } = await writeLocked(text, before.fileHash);
      const said =
        `Edited ${shownName(path)}: ${edits.length} ` +
        `${edits.length === 1 ? 'replacement' : 'replacements'}, now ${linesText(edited)}.`;
      return performed(file, { text, fileHash, said, effect: `The file ${shownName(path)} was changed.` }, work);
    },
  );
}

const EDIT = z.object({
  oldText: z.string().describe('Text that occurs exactly once in the file'),
  newText: z.string().describe('Text to put in its place'),
});

/** The tool `edit`: applies all exact replacements or none, and indexes the file from disk. */
export const editTool = defineTool({
  name: 'edit',
  description:
    'Replace exact texts in a file, all or none. Each oldText must occur exactly once; line endings are kept.',
  shape: {
    path: z.string().min(1).describe('File to change'),
    edits: z.array(EDIT).min(1).max(200).describe('Replacements, each matched against the original'),
  },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  perform: ({ path, edits }, work) => edit(path, edits, work),
});
