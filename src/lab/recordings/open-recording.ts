import { constants, createReadStream } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { CodedError } from '../../values/coded-error.js';
import { codeOf } from '../../values/thrown.js';
import type { RecordingSource } from './importer.js';
import { StoredSessionsError, storedDocument, storedSession, storedSessionAt } from './opencode/stored-sessions.js';

/** Reasons why a recording cannot be read. */
export type RecordingErrorCode = 'unrecognised' | 'empty' | 'binary' | 'unreadable';

/**
 * Thrown before the first entry if a recording cannot be read at all. Later faults are reported as
 * losses.
 */
export class RecordingError extends CodedError<RecordingErrorCode> {
  override readonly name = 'RecordingError';
  /** The path or name by which the recording was opened. */
  readonly recording: string;

  constructor(
    code: RecordingErrorCode,
    message: string,
    details: { readonly recording: string; readonly cause?: unknown },
  ) {
    super(code, message, details);
    this.recording = details.recording;
  }
}

/** Number of bytes at the beginning from which importers recognise the format. */
export const HEAD_BYTES = 256 * 1024;

/** Bytes per read. Larger reads are faster than the default of 64 KiB. */
const CHUNK_BYTES = 512 * 1024;

/** Without O_NONBLOCK, opening a pipe without a writer would block. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

async function readHead(path: string): Promise<Buffer> {
  const file = await open(path, FLAGS);
  try {
    const buffer = Buffer.alloc(HEAD_BYTES);
    let filled = 0;
    while (filled < HEAD_BYTES) {
      const { bytesRead } = await file.read(buffer, filled, HEAD_BYTES - filled, filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  } finally {
    await file.close();
  }
}

async function openFile(path: string, size: number): Promise<RecordingSource> {
  // The agent may still be writing. With a fixed end, every read sees the same bytes.
  const range = size === 0 ? {} : { end: size - 1 };
  return {
    name: path,
    size,
    head: await readHead(path),
    members: undefined,
    open: () => createReadStream(path, { ...range, highWaterMark: CHUNK_BYTES }),
  };
}

/** Opens a session in OpenCode's database in the form of an export. */
function openStored(
  path: string,
  { database, id }: { readonly database: string; readonly id: string },
): RecordingSource {
  const pieces: Buffer[] = [];
  let filled = 0;
  for (const piece of storedDocument(database, id)) {
    pieces.push(Buffer.from(piece));
    filled += pieces.at(-1)?.length ?? 0;
    if (filled >= HEAD_BYTES) break;
  }
  return {
    name: path,
    size: storedSession({ database, id })?.size ?? 0,
    head: Buffer.concat(pieces).subarray(0, HEAD_BYTES),
    members: undefined,
    open: async function* () {
      for (const piece of storedDocument(database, id)) yield Buffer.from(piece);
    },
  };
}

async function openFolder(path: string): Promise<RecordingSource> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(path, join(entry.parentPath, entry.name)));
  const members: string[] = [];
  let size = 0;
  for (const name of names.sort()) {
    const found = await stat(join(path, name)).catch(() => undefined);
    // A broken link counts as a file. Reading it then reports the error.
    if (found?.isFile() === false) continue;
    members.push(name);
    size += found?.size ?? 0;
  }
  const [first] = members;
  if (first === undefined)
    throw new RecordingError('empty', `No file in the folder ${path}: give a recording or the folder of one.`, {
      recording: path,
    });
  return {
    name: path,
    size,
    head: await readHead(join(path, first)),
    members,
    open: (member = first) => createReadStream(join(path, member)),
  };
}

/**
 * Opens the recording at a path: a file in its current state, or a folder with one file per event.
 * A path like `opencode.db#ses_…` names a session in OpenCode's database. No file stays open
 * between reads.
 *
 * @throws {RecordingError} `unreadable`; `empty` if the folder has no file
 */
export async function openRecording(path: string): Promise<RecordingSource> {
  const stored = storedSessionAt(path);
  try {
    if (stored !== undefined) return openStored(path, stored);
    const found = await stat(path);
    return found.isDirectory() ? await openFolder(path) : await openFile(path, found.size);
  } catch (cause) {
    if (cause instanceof RecordingError) throw cause;
    if (cause instanceof StoredSessionsError)
      throw new RecordingError('unreadable', `The recording ${path} cannot be read: ${cause.message}.`, {
        recording: path,
        cause,
      });
    const code = codeOf(cause) ?? 'unknown error';
    const next =
      code === 'ESPIPE'
        ? 'a recording is read more than once, so save the output of the pipe to a file'
        : 'check that it exists and that you may read it';
    throw new RecordingError('unreadable', `The recording ${path} cannot be read (${code}): ${next}.`, {
      recording: path,
      cause,
    });
  }
}
