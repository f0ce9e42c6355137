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
  /** How certain it is that the content is of this format, from 0 to 1. Reads `head` and `members` only. */
  recognise(source: RecordingSource): number;
  /**
   * Streams the entries in the order of the recording, a session entry before all other entries of its session. Never throws for the content: what cannot be
   * imported is reported to `onLoss`, and the import goes on. Memory does not grow with the size of the recording.
   */
  read(source: RecordingSource, onLoss: OnLoss, onItem: OnItem): AsyncIterable<RecordedEntry>;
}
