import { type JournalDamage, JournalError } from './errors.js';
import { journalFolder, listJournalFolder, ownersIn } from './journal-folder.js';
import { type JournalHolder, livingHolder } from './journal-lock.js';
import { readJournal } from './read-journal.js';

/**
 * The state of a journal's files. `sound`, also where a living process is just writing; `torn`: the end of the last write of a dead process is missing,
 * which loses nothing; `corrupt`: records that were acknowledged cannot be read; `newer-format`; `unreadable`.
 */
export type JournalState = 'sound' | 'torn' | 'corrupt' | 'newer-format' | 'unreadable';

/** A journal seen from outside. */
export interface InspectedJournal {
  readonly owner: string;
  /** The living process that writes it; undefined when it has ended. */
  readonly holder: JournalHolder | undefined;
  readonly state: JournalState;
  /** Records that are not known to be in the database, as far as they can be read. */
  readonly pending: number;
  readonly pendingBytes: number;
  /** When the oldest of them was acknowledged, milliseconds since 1970; undefined when none waits. */
  readonly oldestAt: number | undefined;
  readonly damage: readonly JournalDamage[];
  /** Why the journal cannot be read, with `newer-format` and `unreadable`. */
  readonly reason: string | undefined;
}

/** Every journal of a data folder, oldest first, without changing anything. */
export async function inspectJournals(dataDir: string): Promise<readonly InspectedJournal[]> {
  const folder = journalFolder(dataDir);
  const listing = await listJournalFolder(folder);
  const journals: InspectedJournal[] = [];
  for (const owner of ownersIn(listing)) {
    const holder = await livingHolder(folder, owner, listing);
    // A living process removes files while they are looked at.
    const fresh = holder === undefined ? listing : await listJournalFolder(folder);
    if (holder === undefined && !fresh.segments.some((segment) => segment.owner === owner)) continue;
    try {
      const { waiting, torn, corrupt } = await readJournal(folder, owner, fresh);
      const isTorn = torn.length > 0 && holder === undefined;
      journals.push({
        owner,
        holder,
        state: corrupt.length > 0 ? 'corrupt' : isTorn ? 'torn' : 'sound',
        pending: waiting.length,
        pendingBytes: waiting.reduce((sum, { bytes }) => sum + bytes, 0),
        oldestAt: waiting[0]?.at,
        damage: isTorn ? [...torn, ...corrupt] : corrupt,
        reason: undefined,
      });
    } catch (error) {
      if (!(error instanceof JournalError)) throw error;
      const state = error.code === 'newer-format' ? 'newer-format' : 'unreadable';
      journals.push({ owner, holder, state, pending: 0, pendingBytes: 0, oldestAt: undefined, damage: [], reason: error.message });
    }
  }
  return journals;
}
