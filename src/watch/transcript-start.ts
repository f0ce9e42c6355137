import { readFile, stat } from 'node:fs/promises';
import type { RecordMask } from '../client/record-mask.js';
import { importRecording } from '../lab/recordings/import-recording.js';
import type { EntryOf, RecordedEntry } from '../lab/recordings/neutral-session.js';
import { openRecording } from '../lab/recordings/open-recording.js';
import { storedSession, storedSessionAt } from '../lab/recordings/opencode/stored-sessions.js';
import type { FoundFile } from '../own-sessions/find-files.js';
import { asTitle } from '../own-sessions/session-facts.js';
import { unlessMissing } from '../process/system-error.js';
import { defined } from '../values/defined.js';

/** The beginning of a transcript: its first session, and facts that the agent stores about it. */
export interface TranscriptStart {
  /** The agent's own id of the session in the transcript. */
  readonly native: string;
  /** The id under which the session is recorded, with unsupported characters not yet replaced. */
  readonly id: string;
  readonly folder?: string;
  readonly title?: string;
  readonly parent?: NonNullable<EntryOf<'session'>['parent']>;
}

/**
 * Reads the beginning of a transcript. Undefined if it has no session yet.
 * @throws {RecordingError} the file is empty, unreadable or of no known format
 */
export async function readStart({ home, path }: FoundFile): Promise<TranscriptStart | undefined> {
  const source = await openRecording(path);
  for await (const entry of importRecording(source, { onLoss: () => undefined })) {
    if (entry.kind !== 'session') continue;
    const beside = await home.beside(path);
    return {
      native: entry.native_id,
      id: beside.id ?? entry.native_id,
      ...defined({ folder: entry.cwd ?? beside.folder, title: beside.title, parent: entry.parent }),
    };
  }
  return undefined;
}

/** Finds the title of a session in its entries: the name that it was given, or the first prompt. */
export class LiveTitle {
  #name: string | undefined;
  #prompt: string | undefined;
  readonly #mask: RecordMask;

  constructor(name: string | undefined, mask: RecordMask) {
    this.#name = name;
    this.#mask = mask;
  }

  get text(): string {
    return asTitle(this.#name ?? this.#prompt ?? '', this.#mask);
  }

  take(entry: RecordedEntry): void {
    if (entry.kind === 'message' && entry.origin === 'person') this.#prompt ??= entry.text;
    if (entry.kind === 'event' && entry.name === 'titled' && entry.text !== undefined) this.#name = entry.text;
  }
}

/** Returns the current size and time of a recording. Undefined if it is no longer a file. */
export async function presentFile(
  path: string,
): Promise<{ readonly size: number; readonly mtime: number } | undefined> {
  const stored = storedSessionAt(path);
  if (stored !== undefined) return storedSession(stored);
  const found = await unlessMissing(stat(path));
  return found?.isFile() === true ? { size: found.size, mtime: found.mtimeMs } : undefined;
}

/** Returns whether a document is complete. Some agents rewrite their documents in place. */
export async function isWholeDocument(path: string): Promise<boolean> {
  if (storedSessionAt(path) !== undefined) return true;
  try {
    JSON.parse(await readFile(path, 'utf8'));
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
