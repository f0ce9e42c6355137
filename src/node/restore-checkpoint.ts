import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { rename } from '../process/held-files.js';
import { namesIn } from '../process/owned-file.js';
import { systemCode } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import {
  CheckpointError,
  type CheckpointFile,
  type CheckpointStore,
  type FoundCheckpoint,
  filesOf,
  listCheckpoints,
  MANIFEST,
  readManifest,
  requireFormat,
} from './checkpoint.js';

/**
 * Returns the requested checkpoint of a store: the store itself if it is one, otherwise its newest.
 */
async function chosen(store: CheckpointStore): Promise<FoundCheckpoint> {
  if ((await store.text(MANIFEST).catch(() => undefined)) !== undefined) return readManifest(store);
  const found = await listCheckpoints(store);
  const logs = new Set(found.map(({ log }) => log));
  const [newest] = found;
  if (newest === undefined)
    throw new CheckpointError(
      'missing',
      `there is no checkpoint in ${store.address}. Start the node without --restore: it makes its index from the log.`,
    );
  if (logs.size > 1)
    throw new CheckpointError(
      'unfit',
      `${store.address} has checkpoints of ${logs.size} logs. ` +
        'Name one of them with --restore, the newest of each log: ' +
        `${[...logs].map((log) => found.find((one) => one.log === log)?.path).join(', ')}`,
    );
  return newest;
}

async function copyVerified(
  store: CheckpointStore,
  { path, name, files }: FoundCheckpoint,
  draft: string,
): Promise<void> {
  const there = await store.filesBelow(join(name, filesOf()));
  const named = files.map((file) => file.path);
  const stray = there.find((one) => !named.includes(one));
  if (stray !== undefined) throw damaged(path, `${stray} is not one of its files`);
  const limit = pLimit(store.copiesAtOnce);
  let isOver = false;
  const copy = async (file: CheckpointFile): Promise<void> => {
    if (isOver) return;
    try {
      const outside = file.path.startsWith('/') || file.path.split('/').includes('..');
      if (outside || !there.includes(file.path)) throw damaged(path, `${file.path} is missing`);
      const { size, sha256 } = await store.fetch(join(name, filesOf(file.path)), join(draft, file.path));
      if (size !== file.size || sha256 !== file.sha256) throw damaged(path, `${file.path} has other contents`);
    } catch (error) {
      isOver = true;
      throw error;
    }
  };
  // Waits for all copies before the first failure is thrown, so that no write follows the clean-up.
  const ended = await Promise.allSettled(files.map((file) => limit(() => copy(file))));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
}

const damaged = (path: string, what: string): CheckpointError =>
  new CheckpointError(
    'damaged',
    `the checkpoint ${path} has changed since it was written: ${what}. ` +
      'Name another one, or start the node without --restore: it makes its index from the log.',
  );

/**
 * Rejects a data folder that already has an index.
 * @throws {CheckpointError} `index-exists`
 */
export async function refuseOverIndex(dir: string): Promise<void> {
  if (!(await namesIn(dir)).includes('index')) return;
  throw new CheckpointError(
    'index-exists',
    `${dir} has an index already, which catches up with the log automatically. Start the node without --restore; ` +
      `to start from the checkpoint, stop the node and remove ${join(dir, 'index')} first.`,
  );
}

/**
 * Copies the index of a checkpoint into a data folder without one. It uses the named checkpoint, or
 * the newest in a store. Verifies every file by its hash. The index appears completely or not at
 * all. The node itself checks whether the index belongs to its shared log. The caller must hold the
 * start lock.
 * @throws {CheckpointError} `index-exists`, `missing`, `damaged`, `unfit`, `io`
 */
export async function restoreCheckpoint(store: CheckpointStore, dir: string): Promise<FoundCheckpoint> {
  const index = join(dir, 'index');
  await removeDeadDrafts(dir, { isOurs: (name) => name.startsWith('index.'), recursive: true });
  await refuseOverIndex(dir);
  const checkpoint = await chosen(store);
  requireFormat(checkpoint);
  const draft = await draftOf(index);
  try {
    await copyVerified(store, checkpoint, draft);
    await rename(draft, index);
    return checkpoint;
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw new CheckpointError('io', `${checkpoint.path} was not restored: ${messageOf(error)}`, { cause: error });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
