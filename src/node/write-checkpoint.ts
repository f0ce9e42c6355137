import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { withNamedLock } from '../process/lock.js';
import { parseJson } from '../process/owned-file.js';
import { identifySelf, isAlive, processIdentitySchema, ranHere } from '../process/process-identity.js';
import { systemCode } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import {
  CheckpointError,
  type CheckpointManifest,
  type CheckpointStore,
  checkpointName,
  type FoundCheckpoint,
  listCheckpoints,
  manifestText,
  rememberCheckpoints,
} from './checkpoint.js';
import { DATA_FORMAT, type DataFolder, findDataFolder } from './data-folder.js';
import { readLiveness } from './node-state.js';
import { askNode, probeNode } from './probe-node.js';
import { runningNode } from './start-node.js';
import { TIME_LIMITS } from './time-limits.js';

/** Options for writing a checkpoint. */
export interface WriteCheckpointOptions {
  /** The checkpoint store for all hosts of this log. */
  readonly store: CheckpointStore;
  readonly dataDir: string;
  /** Steps of the log that the newest checkpoint may be behind before a new one is written. */
  readonly behind: number;
  /** Number of checkpoints of this log to keep, including this one. */
  readonly keep: number;
}

/** The result of writing a checkpoint. */
export interface CheckpointWritten {
  readonly checkpoint: FoundCheckpoint;
  /** False if the newest one was recent enough. */
  readonly written: boolean;
  /** Older checkpoints that were removed. */
  readonly removed: readonly string[];
}

const claimSchema = processIdentitySchema.extend({ host: z.string() });
/** Age from which a claim counts as left by a dead host. No checkpoint takes this long. */
const CLAIM_MS = 3_600_000;

const CLAIM = 'writing.json';

/**
 * Runs `work` while this process is the only writer of a store among all hosts. The claim is a file
 * that only one process can create. A claim of this host is valid while its process lives. A claim
 * of another host is valid for an hour by the store's clock.
 */
async function whileElected<T>(store: CheckpointStore, work: () => Promise<T>): Promise<T> {
  const content = JSON.stringify({ ...(await identifySelf()), host: hostname(), run: randomUUID() });
  for (let attempt = 1; !(await store.createOnce(CLAIM, content)); attempt++) {
    const text = await store.text(CLAIM);
    const claim = text === undefined ? undefined : parseJson(text, claimSchema);
    if (text !== undefined && attempt < 3 && !(await standsClaim(store, claim))) await store.removeIf(CLAIM, text);
    else if (text !== undefined)
      throw new CheckpointError(
        'busy',
        `process ${claim?.pid ?? '?'} of ${claim?.host ?? 'another host'} is writing a checkpoint into ` +
          `${store.address}; try again later`,
      );
  }
  try {
    await store.sweep();
    return await work();
  } finally {
    // Ignores a failure: the claim expires after an hour, and the result of the work matters more.
    await store.removeIf(CLAIM, content).catch(() => undefined);
  }
}

async function standsClaim(store: CheckpointStore, claim: z.infer<typeof claimSchema> | undefined): Promise<boolean> {
  if (claim !== undefined && claim.host === hostname() && (await ranHere(claim))) return isAlive(claim);
  const age = await store.ageMs(CLAIM);
  // If the claim has just vanished, the caller tries again.
  return age === undefined || age < CLAIM_MS;
}

const madeSchema = z.object({ txId: z.int(), txTime: z.string(), log: z.string().nullable(), indexVersion: z.int() });

async function take(data: DataFolder, store: CheckpointStore): Promise<FoundCheckpoint> {
  const { state } = await readLiveness(data);
  const node = runningNode(state);
  const answer =
    node === undefined
      ? undefined
      : await askNode(node.address, { method: 'POST', path: '/_xtdb/checkpoint', limitMs: TIME_LIMITS.checkpointMs });
  const made = answer === undefined ? undefined : parseJson(answer.body, madeSchema);
  if (made === undefined) {
    const said =
      answer === undefined ? 'it does not answer' : `it answers ${answer.status}: ${answer.body.slice(0, 300)}`;
    throw new CheckpointError(
      'unreachable',
      `the node of ${data.dir} made no checkpoint: ${said}. See: palimpsest node status`,
    );
  }
  if (made.log === null)
    throw new CheckpointError(
      'unfit',
      `checkpoints need a shared log, and the node of ${data.dir} has none: back up the whole data folder instead`,
    );
  const ready = join(data.dir, 'checkpoint');
  const { txId, txTime, log, indexVersion } = made;
  const name = checkpointName({ log, txId });
  try {
    let manifest: CheckpointManifest | undefined;
    // An existing entry with this name is not a readable checkpoint. Otherwise this write would
    // have been skipped.
    await store.write(name, ready, (files) => {
      manifest = {
        format: 1,
        log,
        dataFormat: DATA_FORMAT,
        indexVersion,
        txId,
        txTime,
        host: hostname(),
        files: [...files],
      };
      return manifestText(manifest);
    });
    if (manifest === undefined)
      throw new CheckpointError('io', `${store.address} stored a checkpoint without its manifest`);
    return { ...manifest, path: store.addressOf(name), name };
  } finally {
    await rm(ready, { recursive: true, force: true });
  }
}

/**
 * Writes a checkpoint of the index of a data folder's running node, unless the newest one is recent
 * enough, and removes the oldest. Hosts that write at the same time elect one. A checkpoint appears
 * only when complete. The next write removes files that a killed process left.
 * @throws {CheckpointError} `busy`, `unreachable`, `unfit`, `io`
 */
export async function writeCheckpoint({
  store,
  dataDir,
  behind,
  keep,
}: WriteCheckpointOptions): Promise<CheckpointWritten> {
  const data = await findDataFolder(dataDir);
  const node = data === undefined ? undefined : runningNode((await readLiveness(data)).state);
  if (data === undefined || node === undefined)
    throw new CheckpointError('unreachable', `no node runs on ${dataDir}: start it with palimpsest node start`);
  const log = (await probeNode(node.address, TIME_LIMITS.statusProbeMs))?.log;
  if (log === undefined)
    throw new CheckpointError(
      'unfit',
      `checkpoints need a shared log, and the node of ${data.dir} has none or does not answer: see palimpsest node ` +
        'status',
    );
  try {
    return await whileElected(store, async () => {
      const [newest] = await listCheckpoints(store, log.name);
      if (newest !== undefined && (log.completed ?? 0) - newest.txId <= behind)
        return { checkpoint: newest, written: false, removed: [] };
      const checkpoint = await withNamedLock(
        join(data.dir, 'checkpoint.lock'),
        { limitMs: TIME_LIMITS.checkpointMs },
        () => take(data, store),
      );
      await rememberCheckpoints(data.dir, store.address);
      const old = (await listCheckpoints(store, log.name)).slice(Math.max(1, keep));
      for (const { name } of old) await store.remove(name);
      return { checkpoint, written: true, removed: old.map(({ path }) => path) };
    });
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw new CheckpointError('io', `no checkpoint was written into ${store.address}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
