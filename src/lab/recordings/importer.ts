import type { RecordedEntry, RecordingFormat } from './neutral-session.js';

/** The reasons why something in a recording could not be imported as it is. */
export const LOSS_REASONS = [
  'malformed-record',
  'truncated-file',
  'binary',
  'mixed-formats',
  'unknown-record',
  'unknown-block',
  'unparsed-arguments',
  'missing-result',
  'orphan-result',
  'duplicate-id',
  'clock-backwards',
  'opaque-content',
  'not-as-shown',
  'repaired-text',
] as const;
export type LossReason = (typeof LOSS_REASONS)[number];

/** Something in a recording that was left out or repaired. */
export interface Loss {
  readonly reason: LossReason;
  /** Its place in the recording: `line 172`, `messages[3]`. */
  readonly place: string;
  /** The event in words, with the value shortened to a readable length. */
  readonly detail: string;
}

/** Callback for every loss, as soon as it is found. */
export type OnLoss = (loss: Loss) => void;

/**
 * Called for every transcript item as the format itself counts them: messages, calls and answers,
 * independent of the resulting entries. Only importers whose items cannot be counted from entries
 * call it.
 */
export type OnItem = (session: string) => void;

/** A recording: one file, or a folder with one file per event. */
export interface RecordingSource {
  /** For messages to users. Importers recognise the format by the content alone. */
  readonly name: string;
  /** Size of the file, or of all files of the folder, bytes. */
  readonly size: number;
  /** The first bytes, at most 256 KiB. For a folder, those of its first file. */
  readonly head: Buffer;
  /** Sorted file names of a folder. Undefined for a file. */
  readonly members: readonly string[] | undefined;
  /**
   * Streams the bytes of the file, or of one member of a folder. Can be called more than once. An
   * empty chunk marks a rest of a file that is still written. There, importers of JSON lines return
   * the entries that wait for a possible change only.
   */
  open(member?: string): AsyncIterable<Buffer>;
}

/** Reads the recordings of one format. */
export interface Importer {
  readonly format: RecordingFormat;
  /**
   * Set for formats that may store a conversation as a folder with one file per event. Other
   * importers never get a folder.
   */
  readonly readsFolders?: true;
  /**
   * Returns the certainty that the content has this format, from 0 to 1. Reads `head` and `members`
   * only.
   */
  recognise(source: RecordingSource): number;
  /**
   * Streams the entries in the order of the recording. A session entry comes before all other
   * entries of its session. Content never causes an exception: `onLoss` receives what cannot be
   * imported, and the import continues. Memory does not grow with the recording.
   */
  read(source: RecordingSource, onLoss: OnLoss, onItem: OnItem): AsyncIterable<RecordedEntry>;
}

const EXCERPT_CHARS = 120;

/** Shortens a text for a message and makes its control characters visible. */
export function excerpt(text: string): string {
  const start = text.slice(0, EXCERPT_CHARS).toWellFormed();
  const clear = start.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1));
  return text.length > EXCERPT_CHARS ? `${clear}… (${text.length} characters)` : clear;
}

/** Returns the loss of a value that is not the expected object, such as `a message`. */
export function notAnObject(value: unknown, expected: string, place: string): Loss {
  return {
    reason: 'malformed-record',
    place,
    detail: `a ${value === null ? 'null' : typeof value} where ${expected} was expected`,
  };
}

/** Returns the loss of an unknown role. Its message is kept as one of the program. */
export function unknownRole(role: unknown, place: string, what = 'a message'): Loss {
  return {
    reason: 'unknown-record',
    place,
    detail: `${what} with the role ${JSON.stringify(role)}: kept as what the program said`,
  };
}

/** Counts content that only the provider can read, such as encrypted thoughts and pictures. */
export class OpaqueContent {
  readonly #kinds = new Map<string, { readonly place: string; count: number }>();

  note(kind: string, place: string): void {
    const known = this.#kinds.get(kind);
    if (known === undefined) this.#kinds.set(kind, { place, count: 1 });
    else known.count += 1;
  }

  /** Reports the counts, one loss per kind. */
  finish(onLoss: OnLoss): void {
    for (const [kind, { place, count }] of this.#kinds) {
      onLoss({ reason: 'opaque-content', place, detail: `${kind}: ${count} of them, the first here` });
    }
  }
}
