import type { LocatedFile } from '../client/file-access.js';
import { named, SourceError } from '../filesystem/access/errors.js';
import type { LargeTextReading, SourceReading, TextReading } from '../filesystem/access/read-source.js';
import { defined } from '../values/defined.js';
import type { Performed, Work } from './define-tool.js';
import { continuation, frame, frameSize, headerLine, headerValue, lineRange, remaining, shownId, shownName } from './framing.js';
import { type PageStart, pageOfPieces } from './page.js';
import { ToolError } from './tool.js';

/** Where a page of a file begins and how it is named in the answer. */
export interface Wanted {
  readonly start: PageStart;
  /** How the agent names the file in the next call. */
  readonly call: { readonly path?: string; readonly id?: string; readonly version?: number };
}

/** A reading that has text. */
export type Readable = TextReading | LargeTextReading;

/**
 * The reading of a file that has text.
 *
 * @throws {ToolError} `not-text`, `not-found` – for any other, with what it learned
 */
export function requireReadable(reading: SourceReading, file: LocatedFile, name: string): Readable {
  const shown = shownName(name);
  const learned = { readings: [{ source: file.source, reading, activate: false }] };
  switch (reading.kind) {
    case 'text':
    case 'large-text':
      return reading;
    case 'binary':
      throw new ToolError('not-text', `${shown} is not UTF-8 text (binary, ${reading.size} bytes).`, {
        next: 'Its bytes cannot be shown; it is recorded by its hash only.',
        learned,
      });
    case 'missing':
      throw new ToolError('not-found', name, {
        learned,
        cause: new SourceError('not-found', `${named(name)} does not exist`, { path: name }),
      });
    case 'not-regular':
      if (reading.what === 'directory')
        throw new ToolError('not-text', `${shown} is a folder, not a file.`, { next: `List it instead: ls path=${headerValue(name)}` });
      throw new ToolError('not-text', `${shown} is a ${reading.what}, not a regular file.`, { next: 'Only regular files can be read.' });
    case 'unreachable':
      throw new ToolError('not-found', `${shown} cannot be read: ${UNREACHABLE[reading.reason]}.`, {
        next: 'Use another file. What was stored of it before, if anything, can be read by its id.',
      });
  }
}

const UNREACHABLE: Readonly<Record<Extract<SourceReading, { kind: 'unreachable' }>['reason'], string>> = {
  'no-permission': 'permission denied',
  io: 'the system reports a read error',
  'mount-absent': 'the folder or mount that holds it is not there',
  'foreign-filesystem': 'it lies on a filesystem that cannot be reached from here',
  'outside-roots': 'it lies outside the allowed folders',
  loop: 'it runs through a loop of symbolic links',
  'invalid-path': 'no file can have this name',
};

/** The text of a reading in pieces; head and tail only where it is kept no further (decision C6). */
function pieces(reading: Readable): Iterable<string> {
  if (reading.kind === 'text') return [reading.content];
  return reading.chunks?.() ?? [reading.content];
}

const KEPT_NO_FURTHER = '[The file is over 64 MiB: only its beginning and end are kept, and shown here.]';

/** Reads a file from its source, indexes it, and shows a page of it [§5.6, decisions C1, D8]. */
export async function readFile(file: LocatedFile, wanted: Wanted, work: Work): Promise<Performed> {
  return showReading({ file, reading: await work.client.files.read(file.source, work.signal) }, wanted, work);
}

/** A file and what reading it found. */
interface FileReading {
  readonly file: LocatedFile;
  readonly reading: SourceReading;
}

/** Shows a page of what was read of a file, and hands the reading over to be indexed. */
export function showReading({ file, reading }: FileReading, wanted: Wanted, work: Work): Performed {
  const name = file.location.shown;
  const readable = requireReadable(reading, file, name);
  const abridged = readable.kind === 'large-text' && readable.chunks === undefined;
  const fields = { id: shownId(file.id, work), path: file.display };
  const limits = remaining(work.limits, frameSize('file', { ...fields, ...wanted.call }) + (abridged ? KEPT_NO_FURTHER.length + 1 : 0), 3);
  const page = pageOfPieces(pieces(readable), { start: wanted.start, limits, name });
  const whole = page.whole && !abridged;
  const header = headerLine('file', { ...fields, lines: lineRange(page), chars: page.totalChars });
  const body = page.totalChars === 0 ? '(empty file)' : page.text;
  const notes = [abridged ? KEPT_NO_FURTHER : undefined, continuation(page, 'read', wanted.call)];
  return {
    content: page.text,
    readings: [{ source: file.source, reading, activate: whole || work.strict }],
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
