import type { FileHandle } from 'node:fs/promises';
import { rename as renameNow } from 'node:fs/promises';
import { SYSTEM, type SystemTraits } from './system.js';
import { systemCode } from './system-error.js';
import { pollUntil } from './within-limit.js';

/**
 * Error codes of a rename or removal while another process, such as a scanner, has the file open.
 */
const HELD: ReadonlySet<string> = new Set(['EPERM', 'EACCES', 'EBUSY']);
/**
 * Maximum time in milliseconds to retry. Scanners on Windows close a file soon, without an event.
 */
const HELD_MS = 2_000;

/**
 * Runs a change of a name. On systems where an open file keeps its name, tries again until the
 * other process closes the file, for at most two seconds. Throws system errors.
 */
export async function whenReleased<T>(
  change: () => Promise<T>,
  { holdsOpenFiles }: Pick<SystemTraits, 'holdsOpenFiles'> = SYSTEM,
): Promise<T> {
  if (!holdsOpenFiles) return change();
  let failure: unknown;
  const changed = await pollUntil(
    () =>
      change().then(
        (value) => ({ value }),
        (error: unknown) => {
          if (!HELD.has(systemCode(error) ?? '')) throw error;
          failure = error;
          return undefined;
        },
      ),
    { limitMs: HELD_MS },
  );
  if (changed === undefined) throw failure;
  return changed.value;
}

/** Renames a file or a folder, like the function of Node.js, once no process holds its name. */
export const rename = (from: string, to: string): Promise<void> => whenReleased(() => renameNow(from, to));

/** Flushes the names in an open folder if the system can, so that they survive a power loss. */
export async function flushFolder(folder: FileHandle): Promise<void> {
  if (SYSTEM.flushesFolders) await folder.sync();
}
