import { chmod, copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { draftOf } from '../process/drafts.js';
import { rename } from '../process/held-files.js';
import { journalFailure } from './errors.js';
import {
  type JournalWriter,
  journalFolder,
  lastWriter,
  listJournalFolder,
  lockJournal,
  makeJournalFolder,
} from './journal-folder.js';

/**
 * Copies a journal from another data folder into this one, where it counts as left by a dead
 * process and is adopted next. Only reads the other folder. Returns false and copies nothing if
 * this folder already has a journal of that name, or if another process holds its lock. The journal
 * here may contain more and is delivered first. If the process is killed during the copy, the
 * beginning of the journal remains, without a gap.
 * @throws {JournalError} unwritable, no-space, io – also if a file vanishes meanwhile, as happens
 *   while its process lives
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

/** Returns the last process that wrote a journal, alive or dead; undefined if it is unknown. */
export async function writerOf(dataDir: string, owner: string): Promise<JournalWriter | undefined> {
  return lastWriter(owner, await listJournalFolder(journalFolder(dataDir)));
}
