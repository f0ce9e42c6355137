import type { RecordedEntry, RecordingFormat } from './neutral-session.js';

/** Reasons why a part of a recording could not be imported unchanged. */
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

/** A part of a recording that was left out or repaired. */
export interface Loss {
  readonly reason: LossReason;
  /** The place in the recording: `line 172`, `messages[3]`. */
  readonly place: string;
  /** The loss in words. Quoted values are shortened. */
  readonly detail: string;
}

/** Called for every loss as soon as it is found. */
export type OnLoss = (loss: Loss) => void;

/**
 * Called for every transcript item (message, call or result) as the format itself counts items.
 * Importers call it only if their items cannot be counted from entries.
 */
export type OnItem = (session: string) => void;

/** A recording: one file, or a folder with one file per event. */
export interface RecordingSource {
  /** The name for messages to users. Importers recognise the format by content only. */
  readonly name: string;
  /** Size in bytes, of the file or of all files in the folder. */
  readonly size: number;
  /** The first bytes, at most 256 KiB. For a folder, those of its first file. */
  readonly head: Buffer;
  /** The sorted names of the files in a folder. Undefined for a single file. */
  readonly members: readonly string[] | undefined;
  /**
   * Streams the bytes of the file, or of one file of a folder. It can be called more than once. An
   * empty chunk marks the current end of a growing file. Importers of JSON lines then also return
   * entries that may still change.
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
   * Returns how certain it is that the recording has this format, from 0 to 1. Reads only `head`
   * and `members`.
   */
  recognise(source: RecordingSource): number;
  /**
   * Streams the entries in the order of the recording. A session entry precedes the session's other
   * entries. Never throws because of the content: calls `onLoss` for each part that cannot be
   * imported, and continues. Memory does not grow with the recording.
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

/**
 * Returns the loss for a value that is not an object. `expected` names the object, such as `a
 * message`.
 */
export function notAnObject(value: unknown, expected: string, place: string): Loss {
  return {
    reason: 'malformed-record',
    place,
    detail: `a ${value === null ? 'null' : typeof value} where ${expected} was expected`,
  };
}

/**
 * Returns the loss for an unknown role. The message is kept as one that the recorded program wrote.
 */
export function unknownRole(role: unknown, place: string, what = 'a message'): Loss {
  return {
    reason: 'unknown-record',
    place,
    detail: `${what} with the role ${JSON.stringify(role)}: kept as a message of the program`,
  };
}

/** Counts content that only the provider can read, such as encrypted thoughts and images. */
export class OpaqueContent {
  readonly #kinds = new Map<string, { readonly place: string; count: number }>();

  note(kind: string, place: string): void {
    const known = this.#kinds.get(kind);
    if (known === undefined) this.#kinds.set(kind, { place, count: 1 });
    else known.count += 1;
  }

  /** Reports one loss for each kind of content, with its count. */
  finish(onLoss: OnLoss): void {
    for (const [kind, { place, count }] of this.#kinds) {
      onLoss({ reason: 'opaque-content', place, detail: `${kind}: ${count} of them, the first here` });
    }
  }
}
