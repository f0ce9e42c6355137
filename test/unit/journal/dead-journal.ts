import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Journal, JournalOptions } from '../../../src/journal/journal.js';
import { journalFolder } from '../../../src/journal/journal-folder.js';
import { adoptableJournals, adoptJournal, openJournal } from '../../../src/journal/journals.js';

/** The record files of a data folder's journals by name, with their bytes. */
export type JournalFiles = ReadonlyMap<string, Buffer>;

/** Reads the files of a data folder's journals. */
export async function journalFiles(dataDir: string): Promise<JournalFiles> {
  const folder = journalFolder(dataDir);
  const names = (await readdir(folder)).filter((name) => name.endsWith('.wal')).sort();
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)));
}

/** Puts files into a data folder as a dead process left them: without a held lock. */
export async function putJournalFiles(dataDir: string, files: JournalFiles): Promise<void> {
  const folder = journalFolder(dataDir);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [name, bytes] of files) await writeFile(join(folder, name), bytes);
}

/** An acknowledged record, and the end of its frame. */
export interface Acknowledged {
  readonly sequence: number;
  readonly payload: Buffer;
  readonly file: string;
  readonly end: number;
}

/**
 * Writes records into a new journal, ends like a killed process, and returns its acknowledgements.
 */
export async function writeJournal(
  dataDir: string,
  payloads: readonly Uint8Array[],
  options: JournalOptions = {},
): Promise<{ readonly acknowledged: readonly Acknowledged[]; readonly files: JournalFiles }> {
  const journal = await openJournal(dataDir, { markDelayMs: 1_000_000, ...options });
  const acknowledged: Acknowledged[] = [];
  for (const payload of payloads) {
    const sequence = await journal.append([payload]);
    const files = [...(await journalFiles(dataDir))].sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1));
    const [file, bytes] = files.at(-1) ?? ['', Buffer.alloc(0)];
    acknowledged.push({ sequence, payload: Buffer.from(payload), file, end: bytes.length });
  }
  const files = await journalFiles(dataDir);
  await journal.close();
  return { acknowledged, files };
}

/** Adopts the only existing journal. */
export async function adoptOnly(dataDir: string, options: JournalOptions = {}): Promise<Journal> {
  const [owner, ...others] = await adoptableJournals(dataDir);
  if (owner === undefined || others.length > 0)
    throw new Error(`${others.length + (owner === undefined ? 0 : 1)} journals can be adopted`);
  const journal = await adoptJournal(dataDir, owner, options);
  if (journal === undefined) throw new Error(`${owner} was not adopted`);
  return journal;
}

/** Returns all waiting records, as text by number. */
export async function waiting(journal: Journal): Promise<readonly (readonly [number, string])[]> {
  const records: (readonly [number, string])[] = [];
  for await (const { sequence, payload } of journal.recover()) records.push([sequence, payload.toString('latin1')]);
  return records;
}
