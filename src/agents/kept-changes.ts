import { hash } from 'node:crypto';
import { mkdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { withNamedLock } from '../process/lock.js';
import { readJsonFiles, replaceFile, textOf } from '../process/owned-file.js';
import { SettingsError } from './errors.js';

const value: z.ZodType<unknown> = z.json();
const path = z.array(z.string());
const made = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('entry'), path, value, before: z.string().optional(), created: z.int() }),
  z.object({ kind: z.literal('members'), path, values: z.array(value), created: z.int() }),
  z.object({ kind: z.literal('widened'), path, key: z.string(), before: z.string() }),
]);
const schema = z.object({
  format: z.literal(1),
  agent: z.string(),
  scope: z.enum(['user', 'project']),
  path: z.string(),
  /** The project folder. Links in the settings file's path must not lead out of it. */
  folder: z.string().optional(),
  syntax: z.enum(['json', 'toml']),
  /** Hash of the file before the setup. Null if the file did not exist. */
  before: z.string().nullable(),
  after: z.string(),
  folders: z.array(z.string()),
  made: z.array(made),
  /**
   * An earlier setup of the same file. If the process is killed before it writes the file, the file
   * still has this state.
   */
  earlier: z.object({ after: z.string(), made: z.array(made) }).optional(),
  at: z.iso.datetime(),
});

/** The record of a changed settings file. */
export type KeptChange = z.infer<typeof schema>;

/** Returns the hash that names a backup. */
export const hashOf = (text: string): string => hash('sha256', text);

const folderOf = (dataDir: string): string => join(dataDir, 'agents');
const recordOf = (dataDir: string, settings: string): string =>
  join(folderOf(dataDir), `${hashOf(settings).slice(0, 32)}.json`);

/** Returns the path of the backup of a text. */
const backupOf = (dataDir: string, contentHash: string): string => join(folderOf(dataDir), `${contentHash}.backup`);

/** Returns the records of all settings files that setups changed, oldest first. */
export async function keptChanges(dataDir: string): Promise<readonly KeptChange[]> {
  const found = await readJsonFiles(folderOf(dataDir), schema);
  return [...found].sort((one, other) => one.at.localeCompare(other.at) || one.path.localeCompare(other.path));
}

/** Maximum wait for another setup that is writing, in milliseconds. */
const LOCK_MS = 30_000;

/** Runs `work` while no other setup of this data folder changes files or records. */
export async function alone<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  return withNamedLock(join(dataDir, 'agents.lock'), { limitMs: LOCK_MS }, work);
}

/** Returns the current record of a settings file. Undefined if there is none. */
export async function keptChange(dataDir: string, settings: string): Promise<KeptChange | undefined> {
  return (await keptChanges(dataDir)).find(({ path }) => path === settings);
}

/** Stores the backup of a file and the record of its change. Resolves when both are on disk. */
export async function keepChange(dataDir: string, change: KeptChange, before: string | undefined): Promise<void> {
  await mkdir(folderOf(dataDir), { recursive: true, mode: 0o700 });
  if (before !== undefined) await replaceFile(backupOf(dataDir, hashOf(before)), before, { flush: true });
  await replaceFile(recordOf(dataDir, change.path), `${JSON.stringify(change, null, 2)}\n`, { flush: true });
}

/**
 * Returns the text of a backup.
 * @throws {SettingsError} unreadable – it is damaged or missing
 */
export async function backedUp(dataDir: string, contentHash: string): Promise<string> {
  const path = backupOf(dataDir, contentHash);
  const text = await textOf(path);
  if (text !== undefined && hashOf(text) === contentHash) return text;
  throw new SettingsError('unreadable', `The backup ${path} is ${text === undefined ? 'missing' : 'damaged'}.`);
}

/** The sets of edits that a settings file may contain, newest first. */
export const generationsOf = ({ after, made, earlier }: KeptChange): readonly Pick<KeptChange, 'after' | 'made'>[] =>
  earlier === undefined ? [{ after, made }] : [{ after, made }, earlier];

/** Removes the record of a change, and its backup unless another record needs it. */
export async function forgetChange(dataDir: string, change: KeptChange): Promise<void> {
  await rm(recordOf(dataDir, change.path), { force: true });
  const used = new Set((await keptChanges(dataDir)).map(({ before }) => before));
  if (change.before !== null && !used.has(change.before)) await rm(backupOf(dataDir, change.before), { force: true });
  // Fails while the folder has other records.
  await rmdir(folderOf(dataDir)).catch(() => undefined);
}
