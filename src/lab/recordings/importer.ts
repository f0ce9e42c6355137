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
  /** What happened, in words, with the value cut to a readable length. */
  readonly detail: string;
}

/** Callback for every loss, as soon as it is found. */
export type OnLoss = (loss: Loss) => void;

/**
 * Callback for every item of a session's transcript as the format itself counts them: its records of what was said, called and answered, whatever entries they
 * become. Only those importers call it whose items cannot be counted from the entries.
 */
export type OnItem = (session: string) => void;

/** A recording to be read: one file, or a folder with one file for each event. */
export interface RecordingSource {
  /** For messages to people; importers recognise the format by the content alone. */
  readonly name: string;
  /** Size of the file, or of all files of the folder, bytes. */
  readonly size: number;
  /** The first bytes, at most 256 KiB; of a folder those of its first file. */
  readonly head: Buffer;
  /** File names of a folder, sorted; undefined for a file. */
  readonly members: readonly string[] | undefined;
  /** Streams the bytes of the file, or of one member of a folder. Can be called more than once. */
  open(member?: string): AsyncIterable<Buffer>;
}

/** Reads the recordings of one format. */
export interface Importer {
  readonly format: RecordingFormat;
  /** Set by formats that may store a conversation as a folder with a file for each event. The other importers are never given a folder. */
  readonly readsFolders?: true;
  /** How certain it is that the content is of this format, from 0 to 1. Reads `head` and `members` only. */
  recognise(source: RecordingSource): number;
  /**
   * Streams the entries in the order of the recording, a session entry before all other entries of its session. Never throws for the content: what cannot be
   * imported is reported to `onLoss`, and the import goes on. Memory does not grow with the size of the recording.
   */
  read(source: RecordingSource, onLoss: OnLoss, onItem: OnItem): AsyncIterable<RecordedEntry>;
}

const EXCERPT_CHARS = 120;

/** A text cut to a length that a message can carry, with its control characters made visible. */
export function excerpt(text: string): string {
  const start = text.slice(0, EXCERPT_CHARS).toWellFormed();
  const clear = start.replace(/\p{Cc}/gu, (char) => JSON.stringify(char).slice(1, -1));
  return text.length > EXCERPT_CHARS ? `${clear}… (${text.length} characters)` : clear;
}

/** The loss of a value that is no object where one was expected: `a message`. */
export function notAnObject(value: unknown, expected: string, place: string): Loss {
  return {
    reason: 'malformed-record',
    place,
    detail: `a ${value === null ? 'null' : typeof value} where ${expected} was expected`,
  };
}

/** The loss of a role that no entry has: what has it is kept as a message of the program. */
export function unknownRole(role: unknown, place: string, what = 'a message'): Loss {
  return {
    reason: 'unknown-record',
    place,
    detail: `${what} with the role ${JSON.stringify(role)}: kept as what the program said`,
  };
}

/** Counts the content of a recording that only the provider can read, such as encrypted thoughts and pictures. */
export class OpaqueContent {
  readonly #kinds = new Map<string, { readonly place: string; count: number }>();

  note(kind: string, place: string): void {
    const known = this.#kinds.get(kind);
    if (known === undefined) this.#kinds.set(kind, { place, count: 1 });
    else known.count += 1;
  }

  /** Reports what was counted, one loss for each kind. */
  finish(onLoss: OnLoss): void {
    for (const [kind, { place, count }] of this.#kinds) {
      onLoss({ reason: 'opaque-content', place, detail: `${kind}: ${count} of them, the first here` });
    }
  }
}
