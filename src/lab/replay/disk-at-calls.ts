import type { CanonicalPath } from '../../objects/ids.js';

/** A file that a call read or changed, as the recording shows it after the call. */
export interface SeenText {
  readonly path: CanonicalPath;
  /** Null for a deleted file. Undefined if the recording does not show the whole text. */
  readonly text: string | null | undefined;
}

/** Access to the disk, for a recording that is imported while its agent works. */
export interface DiskAtCalls {
  /**
   * Stores the current versions of those files that are below the session's folder, if the call has
   * just ended. Returns a note for each file whose content differs from the recording, or
   * undefined.
   */
  compare(
    files: readonly SeenText[],
    cwd: string | undefined,
    at: number | undefined,
  ): Promise<readonly string[] | undefined>;
}
