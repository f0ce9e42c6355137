import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { FilesystemSource } from '../../objects/source.js';

/** A file that a call read, by its source's own bytes (decision C1). */
export interface ReportedReading {
  readonly source: FilesystemSource;
  readonly reading: SourceReading;
  /** True for a whole read, which activates the file; false for a part of it (decision D8). */
  readonly activate: boolean;
}

/** An existing regular file that a call's output mentioned [§5.6, Discovery]. */
export interface ReportedMention {
  readonly source: FilesystemSource;
  readonly mtimeMs: number;
}
