import { chmod, copyFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { draftOf } from '../process/drafts.js';
import { journalFailure } from './errors.js';
import { type JournalWriter, journalFolder, lastWriter, listJournalFolder, lockJournal, makeJournalFolder } from './journal-folder.js';

/**
 * Copies a journal of another data folder into one of this host, where it counts as one that a dead process left: whoever looks next adopts it. The other
 * folder is only read. False, with nothing copied, where a journal of that name lies here already, or is just made: that one is delivered first, for it may
 * hold more. A process that is killed here leaves the beginning of the journal, without a gap.
 * @throws {JournalError} unwritable, no-space, io – also where a file went away meanwhile, as it does beside a process that lives
 */
export async function copyJournal(
  from: string,
  owner: string,
  { to, what }: { readonly to: string; readonly what: string },
): Promise<boolean> {
  const [source, target] = [journalFolder(from), await makeJournalFolder(to)];
  const lock = await lockJournal(target, owner, what);
  if (lock === undefined) return false;
  try {
    if ((await listJournalFolder(target)).segments.some((segment) => segment.owner === owner)) return false;
    for (const { file } of (await listJournalFolder(source)).segments.filter((segment) => segment.owner === owner))
      await copyWhole(join(source, file), join(target, file));
    return true;
  } finally {
    lock.vacate();
  }
}

async function copyWhole(path: string, target: string): Promise<void> {
  const draft = await draftOf(target);
  try {
    await copyFile(path, draft);
    await chmod(draft, 0o600);
    await rename(draft, target);
  } catch (error) {
    throw journalFailure('copying', path, error);
  } finally {
    await rm(draft, { force: true });
  }
}

/** The process that wrote a journal last, whether it lives or not; undefined where nothing says so. */
export async function writerOf(dataDir: string, owner: string): Promise<JournalWriter | undefined> {
  return lastWriter(owner, await listJournalFolder(journalFolder(dataDir)));
}
