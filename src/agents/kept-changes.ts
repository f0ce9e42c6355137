import { hash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { namesIn, readJsonFiles, replaceFile, textOf } from '../process/owned-file.js';
import { SettingsError } from './errors.js';

const value: z.ZodType<unknown> = z.json();
const path = z.array(z.string());
const made = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('entry'), path, value, before: z.string().optional(), created: z.int() }),
  z.object({ kind: z.literal('members'), path, values: z.array(z.string()), created: z.int() }),
  z.object({ kind: z.literal('widened'), path, key: z.string(), before: z.string() }),
]);
const schema = z.object({
  format: z.literal(1),
  agent: z.string(),
  scope: z.enum(['user', 'project']),
  path: z.string(),
  syntax: z.enum(['json', 'toml']),
  /** Hash of the file before the setup; null if it did not exist. */
  before: z.string().nullable(),
  after: z.string(),
  folders: z.array(z.string()),
  made: z.array(made),
  at: z.iso.datetime(),
});

/** The record of a changed settings file. */
export type KeptChange = z.infer<typeof schema>;

/** Returns the hash by which a backup is named. */
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

/** Keeps a file's text and the record of its change. Both are on disk before it resolves. */
export async function keepChange(dataDir: string, change: KeptChange, before: string | undefined): Promise<void> {
  await mkdir(folderOf(dataDir), { recursive: true, mode: 0o700 });
  if (before !== undefined) await replaceFile(backupOf(dataDir, hashOf(before)), before, { flush: true });
  await replaceFile(recordOf(dataDir, change.path), `${JSON.stringify(change, null, 2)}\n`, { flush: true });
}

/** Returns the text of a backup. @throws {SettingsError} unreadable – it is damaged or missing */
export async function backedUp(dataDir: string, contentHash: string): Promise<string> {
  const path = backupOf(dataDir, contentHash);
  const text = await textOf(path);
  if (text !== undefined && hashOf(text) === contentHash) return text;
  throw new SettingsError('unreadable', `The backup ${path} is ${text === undefined ? 'missing' : 'damaged'}.`);
}

/** Removes the record of a change, and its backup unless another record needs it. */
export async function forgetChange(dataDir: string, change: KeptChange): Promise<void> {
  await rm(recordOf(dataDir, change.path), { force: true });
  const used = new Set((await keptChanges(dataDir)).map(({ before }) => before));
  if (change.before !== null && !used.has(change.before)) await rm(backupOf(dataDir, change.before), { force: true });
  if ((await namesIn(folderOf(dataDir))).length === 0) await rm(folderOf(dataDir), { recursive: true, force: true });
}
