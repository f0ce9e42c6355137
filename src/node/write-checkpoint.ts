import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import * as z from 'zod';
import { draftOf } from '../process/drafts.js';
import { withNamedLock } from '../process/lock.js';
import { createWholeFile, namesIn, ownedFile, parseJson, textOf } from '../process/owned-file.js';
import { identifySelf, isAlive, processIdentitySchema, ranHere } from '../process/process-identity.js';
import { systemCode } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import {
  CheckpointError,
  type CheckpointManifest,
  checkpointName,
  copyHashed,
  type FoundCheckpoint,
  filesBelow,
  filesOf,
  listCheckpoints,
  MANIFEST,
  manifestText,
  rememberCheckpoints,
} from './checkpoint.js';
import { DATA_FORMAT, type DataFolder, findDataFolder } from './data-folder.js';
import { readLiveness } from './node-state.js';
import { askNode, probeNode } from './node-status.js';
import { runningNode } from './start-node.js';
import { TIME_LIMITS } from './time-limits.js';

/** How a checkpoint is written. */
export interface WriteCheckpointOptions {
  /** Where checkpoints of this log are kept, for all of its hosts. */
  readonly folder: string;
  readonly dataDir: string;
  /** How many steps of the log the newest checkpoint may be behind, so that none is written. */
  readonly behind: number;
  /** How many checkpoints of this log are kept, this one included. */
  readonly keep: number;
}

/** What came of it. */
export interface CheckpointWritten {
  readonly checkpoint: FoundCheckpoint;
  /** False where the newest one was new enough. */
  readonly written: boolean;
  /** Older ones that were removed. */
  readonly removed: readonly string[];
}

const claimSchema = processIdentitySchema.extend({ host: z.string() });
/** Nobody takes so long for a checkpoint: a claim that is older was left by a host that died. */
const CLAIM_MS = 3_600_000;

/**
 * Elects this process of all hosts to write into a folder, by a file that only one can make; its work is then done alone. Of a claim of this host it is known whether its process
 * lives; one of another host counts for an hour by the clock of the folder's own file system.
 */
async function whileElected<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const path = join(folder, 'writing.json');
  const content = JSON.stringify({ ...(await identifySelf()), host: hostname() });
  for (let attempt = 1; !(await createWholeFile(path, content)); attempt++) {
    const text = await textOf(path);
    const claim = text === undefined ? undefined : parseJson(text, claimSchema);
    if (text !== undefined && attempt < 3 && !(await standsClaim(folder, { path, claim }))) await rm(path, { force: true });
    else if (text !== undefined)
      throw new CheckpointError(
        'busy',
        `process ${claim?.pid ?? '?'} of ${claim?.host ?? 'another host'} writes a checkpoint into ${folder}`,
      );
  }
  try {
    for (const name of await namesIn(folder)) if (name.endsWith('.draft')) await rm(join(folder, name), { recursive: true, force: true });
    return await work();
  } finally {
    ownedFile(path, content).remove();
  }
}

async function standsClaim(
  folder: string,
  { path, claim }: { readonly path: string; readonly claim: z.infer<typeof claimSchema> | undefined },
) {
  if (claim !== undefined && claim.host === hostname() && (await ranHere(claim))) return isAlive(claim);
  const probe = await draftOf(join(folder, 'now'));
  try {
    await writeFile(probe, '');
    const [now, then] = await Promise.all([stat(probe), stat(path)]);
    return now.mtimeMs - then.mtimeMs < CLAIM_MS;
  } catch (error) {
    // It has just gone.
    if (systemCode(error) === 'ENOENT') return true;
    throw error;
  } finally {
    await rm(probe, { force: true });
  }
}

const madeSchema = z.object({ txId: z.int(), txTime: z.string(), log: z.string().nullable(), indexVersion: z.int() });

/** Copies what the node has put into its data folder, with hashes, into a folder of its own beside the checkpoints. */
async function copyIndex(from: string, to: string): Promise<CheckpointManifest['files']> {
  const files: { path: string; size: number; sha256: string }[] = [];
  for (const path of await filesBelow(from)) files.push({ path, ...(await copyHashed(join(from, path), join(filesOf(to), path))) });
  return files;
}

async function take(data: DataFolder, folder: string): Promise<FoundCheckpoint> {
  const { state } = await readLiveness(data);
  const node = runningNode(state);
  const answer =
    node === undefined
      ? undefined
      : await askNode(node.address, { method: 'POST', path: '/_xtdb/checkpoint', limitMs: TIME_LIMITS.checkpointMs });
  const made = answer === undefined ? undefined : parseJson(answer.body, madeSchema);
  if (made === undefined) {
    const said = answer === undefined ? 'it does not answer' : `it answers ${answer.status}: ${answer.body.slice(0, 300)}`;
    throw new CheckpointError('unreachable', `the node of ${data.dir} made no checkpoint: ${said}. See: palimpsest node status`);
  }
  if (made.log === null)
    throw new CheckpointError('unfit', `the node of ${data.dir} shares its log with no other: back the whole data folder up instead`);
  const ready = join(data.dir, 'checkpoint');
  const { txId, txTime, log, indexVersion } = made;
  const path = join(folder, checkpointName({ log, txId }));
  const draft = await draftOf(path);
  try {
    await mkdir(draft, { mode: 0o700 });
    const files = await copyIndex(ready, draft);
    const manifest: CheckpointManifest = { format: 1, log, dataFormat: DATA_FORMAT, indexVersion, txId, txTime, host: hostname(), files };
    await writeFile(join(draft, MANIFEST), manifestText(manifest), { mode: 0o600, flush: true });
    // What has this name already is no checkpoint that can be read: there would be nothing to write.
    await rm(path, { recursive: true, force: true });
    await rename(draft, path);
    return { ...manifest, path };
  } finally {
    await Promise.all([draft, ready].map((one) => rm(one, { recursive: true, force: true })));
  }
}

/**
 * Writes a checkpoint of the index of a data folder's running node, unless the newest one of its log is new enough, and removes the oldest. Hosts that do so at the same time
 * elect one. A checkpoint appears whole; what a killed process left is removed by the next one.
 * @throws {CheckpointError} `busy`, `unreachable`, `unfit`, `io`
 */
export async function writeCheckpoint({ folder, dataDir, behind, keep }: WriteCheckpointOptions): Promise<CheckpointWritten> {
  const target = resolve(folder);
  const data = await findDataFolder(dataDir);
  const node = data === undefined ? undefined : runningNode((await readLiveness(data)).state);
  if (data === undefined || node === undefined)
    throw new CheckpointError('unreachable', `no node runs on ${dataDir}: start it with palimpsest node start`);
  const log = (await probeNode(node.address, TIME_LIMITS.statusProbeMs))?.log;
  if (log === undefined)
    throw new CheckpointError(
      'unfit',
      `the node of ${data.dir} shares its log with no other, or does not answer: see palimpsest node status`,
    );
  try {
    await mkdir(target, { recursive: true, mode: 0o700 });
    return await whileElected(target, async () => {
      const [newest] = await listCheckpoints(target, log.name);
      if (newest !== undefined && (log.completed ?? 0) - newest.txId <= behind) return { checkpoint: newest, written: false, removed: [] };
      const checkpoint = await withNamedLock(join(data.dir, 'checkpoint.lock'), { limitMs: TIME_LIMITS.checkpointMs }, () =>
        take(data, target),
      );
      await rememberCheckpoints(data.dir, target);
      const old = (await listCheckpoints(target, log.name)).slice(Math.max(1, keep));
      for (const { path } of old) await rm(path, { recursive: true, force: true });
      return { checkpoint, written: true, removed: old.map(({ path }) => path) };
    });
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw new CheckpointError('io', `no checkpoint was written into ${target}: ${messageOf(error)}`, { cause: error });
  }
}
