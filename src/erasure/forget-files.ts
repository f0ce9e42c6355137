import { lstat, readFile, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { forgetImported, importedSessions } from '../host/imported-sessions.js';
import { journalFolder, listJournalFolder, livingWriter, settledFolder } from '../journal/journal-folder.js';
import { SESSION_TABLE } from '../node/session-table-file.js';
import { bytesHold, type Forgetter, type Forgotten } from '../objects/forgotten.js';
import { clientFolders } from '../process/data-folder.js';
import { namesIn } from '../process/owned-file.js';
import { unlessMissing } from '../process/system-error.js';
import { ErasureError } from './erasure-error.js';

/** Returns whether bytes contain an erased text, or the id of an erased session or document. */
function concerns(bytes: Buffer, { sessions, documents, texts }: Forgotten): boolean {
  if (bytesHold(bytes, texts) || [...sessions].some((session) => bytes.includes(session))) return true;
  // The number of ids is limited, because each one is searched for in all bytes.
  return [...documents].slice(0, 1_000).some((id) => bytes.includes(id));
}

const unpacked = promisify(gunzip);
/** The first bytes of a gzipped file, such as a bundle. */
const GZIP = Buffer.from([0x1f, 0x8b]);

const concernsFile = async (path: string, forgotten: Forgotten): Promise<boolean> => {
  const bytes = await unlessMissing(readFile(path));
  if (bytes === undefined) return false;
  // If unpacking fails, the file is not a bundle.
  const plain = bytes.subarray(0, 2).equals(GZIP) ? await unpacked(bytes).catch(() => bytes) : bytes;
  return concerns(plain, forgotten);
};

/**
 * Maximum wait until running processes remove their journals, and the poll interval, in
 * milliseconds.
 */
const JOURNAL_MS = 20_000;
const LOOK_MS = 200;

async function journalFiles(dataDir: string, forgotten: Forgotten): Promise<readonly string[]> {
  const found: string[] = [];
  for (const folder of [journalFolder(dataDir), settledFolder(dataDir)])
    for (const name of await namesIn(folder).catch(() => []))
      if (/\.wal(?:\..*)?$/.test(name) && (await concernsFile(join(folder, name), forgotten)))
        found.push(join(folder, name));
  return found;
}

/**
 * Erases journals. Removes archived damaged journals, and waits for the others. A running process
 * removes its journal's file when idle. Journals of dead processes were delivered before.
 */
const FORGET_JOURNALS: Forgetter = {
  keeps: 'the journals',
  find: async (dataDir, forgotten) => (await journalFiles(dataDir, forgotten)).map((path) => `the journal ${path}`),
  forget: async (dataDir, forgotten) => {
    for (const path of await journalFiles(dataDir, forgotten))
      if (path.endsWith('.damaged')) await rm(path, { force: true });
    for (const end = Date.now() + JOURNAL_MS; Date.now() < end; await delay(LOOK_MS))
      if ((await journalFiles(dataDir, forgotten)).length === 0) return;
    const listing = await listJournalFolder(journalFolder(dataDir));
    const owners = await Promise.all(
      [...new Set(listing.segments.map(({ owner }) => owner))].map((one) => livingWriter(one, listing)),
    );
    const living = owners.flatMap((one) => (one === undefined ? [] : [`${one.pid} (${one.what})`]));
    throw new ErasureError(
      'unfinished',
      `the journals still hold delivered text, because these processes keep writing: ${living.join(', ')}. ` +
        'End them, then run: palimpsest erase --resume',
    );
  },
};

/** Caches with titles or sizes of sessions. They are rebuilt on the next use. */
const CACHES: readonly string[] = ['own-sessions.json', 'session-figures.json', SESSION_TABLE];

/** Returns the caches of a data folder and of its clients on foreign nodes. */
const cachesOf = async (dataDir: string): Promise<readonly string[]> =>
  (await clientFolders(dataDir)).flatMap((folder) => CACHES.map((name) => join(folder, name)));

/** Erases caches of sessions' titles and sizes. */
const FORGET_CACHES: Forgetter = {
  keeps: 'lists that are rebuilt',
  find: async (dataDir, forgotten) => {
    const caches = await cachesOf(dataDir);
    const found = await Promise.all(caches.map((path) => concernsFile(path, forgotten)));
    return caches.filter((_, i) => found[i]).map((path) => `the list ${relative(dataDir, path)}, which is rebuilt`);
  },
  forget: async (dataDir) => {
    for (const path of await cachesOf(dataDir)) await rm(path, { force: true });
  },
};

/** Erases bundles and pages that were exported into the data folder. */
const FORGET_EXPORTS: Forgetter = {
  keeps: 'exports in the data folder',
  find: async (dataDir, forgotten) => (await exportsIn(dataDir, forgotten)).map((name) => `the export ${name}`),
  forget: async (dataDir, forgotten) => {
    for (const name of await exportsIn(dataDir, forgotten)) await rm(join(dataDir, name), { force: true });
  },
};

async function exportsIn(dataDir: string, forgotten: Forgotten): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of await namesIn(dataDir)) {
    if (OWN_FILES.has(name) || !(await lstat(join(dataDir, name))).isFile()) continue;
    if (await concernsFile(join(dataDir, name), forgotten)) found.push(name);
  }
  return found;
}

const OWN_FILES: ReadonlySet<string> = new Set([
  'palimpsest.json',
  'checkpoint.lock',
  'checkpoints.json',
  'filesystem-id',
  'mask-key',
  'mask-rules',
  'node.lock',
  'start.lock',
  'imported-sessions.json',
  'node.json',
  'shared-log.json',
  'watch-gateway.json',
  ...CACHES,
]);

/** Erases the entries about imported recordings of erased sessions. */
const FORGET_IMPORTS: Forgetter = {
  keeps: 'the notes on imported recordings',
  find: async (dataDir, { sessions }) =>
    [...(await importedSessions(dataDir))].flatMap(([session, { path }]) =>
      sessions.has(session) ? [`the note on ${path}. The agent's own recording stays; remove it yourself`] : [],
    ),
  forget: (dataDir, { sessions }) => forgetImported(dataDir, sessions),
};

/** Every copy outside the database that this module can erase. */
export const FORGET_FILES: readonly Forgetter[] = [FORGET_JOURNALS, FORGET_IMPORTS, FORGET_CACHES, FORGET_EXPORTS];
