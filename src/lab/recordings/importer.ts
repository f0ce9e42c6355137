import type { RecordedEntry, RecordingFormat } from './neutral-session.js';

/** Why something of a recording could not be taken over as it is. */
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

/** One thing that was lost or repaired. */
export interface Loss {
  readonly reason: LossReason;
  /** Where in the recording: `line 172`, `messages[3]`. */
  readonly place: string;
  /** In words, with the value cut to a readable length. */
  readonly detail: string;
}

/** Told every loss as it is found. */
export type OnLoss = (loss: Loss) => void;

/**
 * Told each item of the transcript of a session as the format itself counts them: its own records of what was said, called and answered, whatever entries
 * they become here. Only importers tell it whose items cannot be counted by their entries.
 */
export type OnItem = (session: string) => void;

/** A recording to be read: one file, or a folder with one file for each event. */
export interface RecordingSource {
  /** For messages only; the format is never told by the name. */
  readonly name: string;
  /** Size of everything, bytes. */
  readonly size: number;
  /** The first bytes, at most 256 KiB; of a folder, of its first event. */
  readonly head: Buffer;
  /** File names of a folder, sorted; undefined for a file. */
  readonly members: readonly string[] | undefined;
  /** The bytes; of a folder, of one member. Can be opened more than once. */
  open(member?: string): AsyncIterable<Buffer>;
}

/** How one format is read. */
export interface Importer {
  readonly format: RecordingFormat;
  /** Whether the content is of this format: 0 for no, up to 1 for certain. Looks at `head` and `members` alone. */
  recognise(source: RecordingSource): number;
  /**
   * The entries in the order of the recording, a session entry before everything of its session. Never throws for what is in the recording: what cannot be
   * taken over is told to `onLoss` and the rest goes on. Memory does not grow with the recording.
   */
  read(source: RecordingSource, onLoss: OnLoss, onItem: OnItem): AsyncIterable<RecordedEntry>;
}
