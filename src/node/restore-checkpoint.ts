import { rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { namesIn } from '../process/owned-file.js';
import { systemCode } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import {
  CheckpointError,
  copyHashed,
  type FoundCheckpoint,
  filesBelow,
  filesOf,
  listCheckpoints,
  MANIFEST,
  readManifest,
  requireFormat,
} from './checkpoint.js';

/** The checkpoint that a folder is asked for: the one that it is, else the newest in it. */
async function chosen(folder: string): Promise<FoundCheckpoint> {
  if ((await namesIn(folder).catch((): string[] => [])).includes(MANIFEST)) return readManifest(folder);
  const found = await listCheckpoints(folder);
  const logs = new Set(found.map(({ log }) => log));
  const [newest] = found;
  if (newest === undefined)
    throw new CheckpointError(
      'missing',
      `there is no checkpoint in ${folder}. Start the node without --restore: it makes its index from the log.`,
    );
  if (logs.size > 1)
    throw new CheckpointError(
      'unfit',
      `${folder} has checkpoints of ${logs.size} logs. Name one of them with --restore, the newest of each log: ${[...logs].map((log) => found.find((one) => one.log === log)?.path).join(', ')}`,
    );
  return newest;
}

async function copyVerified({ path, files }: FoundCheckpoint, draft: string): Promise<void> {
  const there = await filesBelow(filesOf(path));
  const named = files.map((file) => file.path);
  const stray = there.find((name) => !named.includes(name));
  if (stray !== undefined) throw damaged(path, `${stray} is none of its files`);
  for (const file of files) {
    const outside = file.path.startsWith('/') || file.path.split('/').includes('..');
    if (outside || !there.includes(file.path)) throw damaged(path, `${file.path} is missing`);
    const { size, sha256 } = await copyHashed(join(filesOf(path), file.path), join(draft, file.path));
    if (size !== file.size || sha256 !== file.sha256) throw damaged(path, `${file.path} has other contents`);
  }
}

const damaged = (path: string, what: string): CheckpointError =>
  new CheckpointError(
    'damaged',
    `the checkpoint ${path} is not as it was written: ${what}. Name another one, or start the node without --restore: it makes its index from the log.`,
  );

/**
 * Puts the index of a checkpoint into a data folder that has none: the one that is named, or the newest of a folder of checkpoints. Every file is compared with its hash; the index
 * appears whole or not at all. Whether it was made from the log that the node shares, the node finds out. Undefined, with nothing done, where the data folder has an index.
 * For whoever holds the start lock.
 * @throws {CheckpointError} `missing`, `damaged`, `unfit`, `io`
 */
export async function restoreCheckpoint(folder: string, dir: string): Promise<FoundCheckpoint | undefined> {
  const index = join(dir, 'index');
  await removeDeadDrafts(dir, { isOurs: (name) => name.startsWith('index.'), recursive: true });
  if ((await namesIn(dir)).includes('index')) return undefined;
  const checkpoint = await chosen(resolve(folder));
  requireFormat(checkpoint);
  const draft = await draftOf(index);
  try {
    await copyVerified(checkpoint, draft);
    await rename(draft, index);
    return checkpoint;
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw new CheckpointError('io', `${checkpoint.path} was not restored: ${messageOf(error)}`, { cause: error });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
