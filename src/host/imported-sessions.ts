import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import * as z from 'zod';
import { withNamedLock } from '../process/lock.js';
import { replaceFile } from '../process/owned-file.js';

const importedSchema = z.object({
  /** The agent's name for people. */
  agent: z.string(),
  /** The recording's own name of the session, or its first prompt. */
  title: z.string(),
  folder: z.string().optional(),
  /** Our id of the session that started this one as a sub-agent. */
  subagentOf: z.string().optional(),
  /** The recording when it was imported. `size` is -1 until an import is complete. */
  path: z.string(),
  size: z.number(),
  mtime: z.number(),
});

/** A session that was imported from an agent's own recording. */
export type ImportedSession = z.output<typeof importedSchema>;

const fileSchema = z.object({ version: z.literal(1), sessions: z.record(z.string(), importedSchema) });

/** Returns the file of a data folder that lists its imported sessions. */
const fileIn = (dataDir: string): string => join(dataDir, 'imported-sessions.json');

/** Returns the imported sessions of a data folder by their ids. A damaged file counts as empty. */
export async function importedSessions(dataDir: string): Promise<ReadonlyMap<string, ImportedSession>> {
  try {
    const parsed = fileSchema.safeParse(JSON.parse(await readFile(fileIn(dataDir), 'utf8')));
    return new Map(Object.entries(parsed.data?.sessions ?? {}));
  } catch {
    return new Map();
  }
}

/** Runs this process's changes of the list one after another. */
const ownNotes = pLimit(1);

/** Maximum wait in milliseconds for another process that changes the list. */
const LOCK_MS = 10_000;

/** Adds an imported session to the list. Its file has titles, so only this user can read it. */
export async function noteImported(dataDir: string, session: string, imported: ImportedSession): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await changeImported(dataDir, (sessions) => sessions.set(session, imported));
}

/** Removes erased sessions from the list. */
export async function forgetImported(dataDir: string, erased: ReadonlySet<string>): Promise<void> {
  if (![...(await importedSessions(dataDir)).keys()].some((one) => erased.has(one))) return;
  await changeImported(dataDir, (sessions) => {
    for (const one of erased) sessions.delete(one);
  });
}

async function changeImported(
  dataDir: string,
  change: (sessions: Map<string, ImportedSession>) => void,
): Promise<void> {
  const note = async (): Promise<void> => {
    const sessions = new Map(await importedSessions(dataDir));
    change(sessions);
    const content = { version: 1, sessions: Object.fromEntries(sessions) };
    await replaceFile(fileIn(dataDir), `${JSON.stringify(content)}\n`);
  };
  // The lock keeps other processes out. Without `ownNotes`, a process with many imports would poll
  // its own lock.
  await ownNotes(() => withNamedLock(`${fileIn(dataDir)}.lock`, { limitMs: LOCK_MS }, note));
}
