import { FileRecorder, type FileRecorderOptions, textOfReading } from '../client/tracking/file-recorder.js';
import type { DiskAtCalls, SeenText } from '../lab/replay/replay-engine.js';
import { messageOf } from '../values/thrown.js';

/**
 * A call that ended longer ago says nothing about the disk of now, milliseconds. A transcript that
 * is read for the first time is older.
 */
const NOW_MS = 5_000;
/** Maximum number of files of one call that are read. */
const MOST_FILES = 50;

/** How the disk is read and stored. */
export interface DiskOptions extends FileRecorderOptions {
  /** Takes one line when the versions of files could not be stored. */
  readonly onNotice: (line: string) => void;
}

/**
 * Stores the files of calls that have just ended, under this machine's own filesystem. A session's
 * own files hold what its transcript shows.
 */
export class DiskVersions implements DiskAtCalls {
  readonly #options: DiskOptions;
  #recorder: FileRecorder | undefined;

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  async compare(
    files: readonly SeenText[],
    cwd: string | undefined,
    at: number | undefined,
  ): Promise<readonly string[] | undefined> {
    const isNow = at !== undefined && Math.abs(Date.now() - at) <= NOW_MS;
    if (!isNow || cwd === undefined || files.length === 0) return undefined;
    this.#recorder ??= new FileRecorder(this.#options);
    const some = files.slice(0, MOST_FILES);
    try {
      const readings = await this.#recorder.record(
        cwd,
        some.map(({ path }) => path),
      );
      const notes = some.flatMap(({ path, text }, i) => {
        const reading = readings[i];
        const onDisk = reading === undefined ? undefined : textOfReading(reading);
        if (text === undefined || onDisk === undefined || isAlike(text, onDisk)) return [];
        return [noteOn(path, text, onDisk)];
      });
      return notes.length === 0 ? undefined : notes;
    } catch (error) {
      this.#options.onNotice(`Files below ${cwd} were not stored from disk: ${messageOf(error)}`);
      return undefined;
    }
  }

  async close(): Promise<void> {
    await this.#recorder?.close();
    this.#recorder = undefined;
  }
}

/** Transcripts leave out the last line end, and some write every line end as one character. */
const lines = (text: string): string => text.replaceAll('\r\n', '\n').replace(/\n$/, '');

const isAlike = (shown: string | null, onDisk: string | null): boolean =>
  shown === null || onDisk === null ? shown === onDisk : lines(shown) === lines(onDisk);

function noteOn(path: string, shown: string | null, onDisk: string | null): string {
  if (onDisk === null) return `${path}: the transcript shows this file, and the disk had none at that moment`;
  if (shown === null) return `${path}: the transcript shows it deleted, and the disk had it at that moment`;
  return `${path}: the disk had other content at that moment than the transcript shows; both are stored`;
}
