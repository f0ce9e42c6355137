import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod';
import { parseJson, replaceFile, textOf } from '../process/owned-file.js';
import { CodedError } from '../values/coded-error.js';
import { codeOf, messageOf } from '../values/thrown.js';
import { DATA_FORMAT } from './data-folder.js';

/**
 * Why a checkpoint cannot be written or used. `missing`: it does not exist. `damaged`: its content
 * has changed. `unfit`: another version wrote it, or the node has no index for other hosts.
 * `index-exists`: the data folder has an index, which the checkpoint would replace. `busy`: another
 * host is writing a checkpoint there. `unreachable`: no running node can create a checkpoint. `io`:
 * the checkpoint store cannot be read or written.
 */
export type CheckpointErrorCode = 'missing' | 'damaged' | 'unfit' | 'index-exists' | 'busy' | 'unreachable' | 'io';

/** Thrown if a checkpoint of an index cannot be written or used. No existing file was changed. */
export class CheckpointError extends CodedError<CheckpointErrorCode> {
  override readonly name = 'CheckpointError';
}

const manifestSchema = z.object({
  format: z.literal(1),
  /** The name of the index's log. */
  log: z.string().min(1),
  /** The format of that log's content. */
  dataFormat: z.int().positive(),
  /** The format of XTDB's index. */
  indexVersion: z.int(),
  /** A transaction that the index includes. */
  txId: z.int().nonnegative(),
  txTime: z.iso.datetime({ offset: true }),
  /** The host that wrote it. */
  host: z.string(),
  files: z.array(z.object({ path: z.string().min(1), size: z.int().nonnegative(), sha256: z.string().length(64) })),
});

/** The manifest of a checkpoint: its index, and its files with their hashes. */
export type CheckpointManifest = Readonly<z.infer<typeof manifestSchema>>;

/** One file of a checkpoint, with its path in the index. */
export type CheckpointFile = CheckpointManifest['files'][number];

/** A stored checkpoint, known by its name and manifest. Its files have not been verified. */
export interface FoundCheckpoint extends CheckpointManifest {
  /** The checkpoint's folder or address. */
  readonly path: string;
  /** The checkpoint's path in its store; empty if the checkpoint is the store itself. */
  readonly name: string;
}

/** The size and hash of a copied file. */
export type CopiedFile = Omit<CheckpointFile, 'path'>;

/**
 * A store of checkpoints for all hosts, or a single checkpoint. Paths in it are relative and
 * separated by `/`.
 *
 * Each method throws system errors or CheckpointError `io`.
 */
export interface CheckpointStore {
  /** The store's name in messages. */
  readonly address: string;
  /** The best number of concurrent copies. */
  readonly copiesAtOnce: number;
  /** Returns the name in messages of a path in the store. */
  addressOf(path: string): string;
  /** Returns the names at the top of the store. Empty if the store does not exist. */
  names(): Promise<readonly string[]>;
  /** Returns all files below a path, relative to it, in order. */
  filesBelow(path: string): Promise<readonly string[]>;
  /** Returns the text of a small file; undefined if it does not exist. */
  text(path: string): Promise<string | undefined>;
  /** Copies a file to this host durably and returns its size and hash. */
  fetch(path: string, to: string): Promise<CopiedFile>;
  /**
   * Writes a checkpoint: the files of a local folder, then the manifest that is computed from them.
   * The checkpoint appears only when complete. It replaces one of the same name.
   */
  write(name: string, from: string, manifest: (files: readonly CheckpointFile[]) => string): Promise<void>;
  remove(name: string): Promise<void>;
  /**
   * Creates a file if it does not exist. Returns false if it exists. Of all hosts that try, only
   * one succeeds. Creates the store if necessary.
   */
  createOnce(path: string, content: string): Promise<boolean>;
  /**
   * Returns the age of a file by the store's own clock in milliseconds; undefined if it does not
   * exist.
   */
  ageMs(path: string): Promise<number | undefined>;
  /** Removes a file if it still has this content. */
  removeIf(path: string, content: string): Promise<void>;
  /** Removes the leftovers of killed writers. Only the elected writer may call it. */
  sweep(): Promise<void>;
}

/** A process environment with the credentials of an S3-compatible store. */
export type StoreEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the path of an index file in a checkpoint. Without an argument, returns the folder of all
 * index files.
 */
export const filesOf = (file = ''): string => join('index', file);

/** The manifest's file name. */
export const MANIFEST = 'manifest.json';
const NAME = /^checkpoint-[0-9a-f]{8}-\d{12,}$/;
/**
 * Returns whether an entry with this name is a checkpoint. Other entries belong to other programs.
 */
export const isCheckpointName = (name: string): boolean => NAME.test(name);
const sealedSchema = z.object({ manifest: z.string(), sha256: z.string().length(64) });
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns the name of a checkpoint, which contains its log and transaction. */
export const checkpointName = ({ log, txId }: Pick<CheckpointManifest, 'log' | 'txId'>): string =>
  `checkpoint-${sha256(log).slice(0, 8)}-${String(txId).padStart(12, '0')}`;

/**
 * Returns the text of a manifest file. The file contains the hash of its content, which reveals any
 * change.
 */
export function manifestText(manifest: CheckpointManifest): string {
  const text = JSON.stringify(manifest);
  return `${JSON.stringify({ manifest: text, sha256: sha256(text) }, null, 2)}\n`;
}

const formatSchema = z.looseObject({ format: z.int() });

/**
 * Reads the manifest of a checkpoint in a store. Without a name, the store itself is the
 * checkpoint.
 * @throws {CheckpointError} `missing`, `damaged`, `io`; `unfit` – a later version wrote it
 */
export async function readManifest(store: CheckpointStore, name = ''): Promise<FoundCheckpoint> {
  const [path, inStore] = [store.addressOf(name), join(name, MANIFEST)];
  const file = store.addressOf(inStore);
  const text = await store.text(inStore).catch((error: unknown) => {
    throw new CheckpointError('io', `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  });
  if (text === undefined)
    throw new CheckpointError('missing', `there is no checkpoint in ${path}: it has no ${MANIFEST}`);
  const sealed = parseJson(text, sealedSchema);
  if (sealed === undefined || sha256(sealed.manifest) !== sealed.sha256)
    throw new CheckpointError(
      'damaged',
      `${file} has changed since it was written. Use another checkpoint, or start the node without one.`,
    );
  const manifest = parseJson(sealed.manifest, manifestSchema);
  if (manifest !== undefined) return { ...manifest, path, name };
  const format = parseJson(sealed.manifest, formatSchema)?.format;
  throw new CheckpointError(
    'unfit',
    `${file} has format ${format ?? 'unknown'}; this version knows format 1. Use the version that wrote it.`,
  );
}

/**
 * Returns undefined for the error of an entry that is not a valid checkpoint. Rethrows any read
 * error.
 */
function passOver(error: unknown): undefined {
  if (codeOf(error) === 'io') throw error;
}

/**
 * Returns the checkpoints of a store, or those of one log. For each log, the newest comes first.
 * Skips damaged checkpoints and those of other formats.
 * @throws {CheckpointError} io – the store cannot be read
 */
export async function listCheckpoints(store: CheckpointStore, log?: string): Promise<readonly FoundCheckpoint[]> {
  const names = await store.names().catch((error: unknown) => {
    throw new CheckpointError('io', `the checkpoints of ${store.address} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  });
  const found = await Promise.all(
    names.filter(isCheckpointName).map((name) => readManifest(store, name).catch(passOver)),
  );
  return found
    .flatMap((one) => (one === undefined || (log !== undefined && one.log !== log) ? [] : [one]))
    .sort((a, b) => b.txTime.localeCompare(a.txTime) || b.txId - a.txId);
}

/**
 * Rejects a checkpoint of another format.
 * @throws {CheckpointError} unfit
 */
export function requireFormat({ path, dataFormat }: FoundCheckpoint): void {
  if (dataFormat === DATA_FORMAT) return;
  const next =
    dataFormat > DATA_FORMAT
      ? 'Use the newer version of Palimpsest that wrote it'
      : 'This version cannot read it. Start the node without it: the node then builds its index from the log';
  throw new CheckpointError(
    'unfit',
    `${path} has data format ${dataFormat}; this version has format ${DATA_FORMAT}. ${next}.`,
  );
}

const rememberedSchema = z.object({ folder: z.string() });
const rememberedFile = (dir: string): string => join(dir, 'checkpoints.json');

/** Records in a data folder where its log's checkpoints are stored, for `node status`. */
export const rememberCheckpoints = (dir: string, address: string): Promise<void> =>
  replaceFile(rememberedFile(dir), `${JSON.stringify({ folder: address })}\n`);

/**
 * Returns where the checkpoints of a data folder's log are stored; undefined if it never had any.
 */
export async function rememberedCheckpoints(dir: string): Promise<string | undefined> {
  const text = await textOf(rememberedFile(dir)).catch(() => undefined);
  return text === undefined ? undefined : parseJson(text, rememberedSchema)?.folder;
}
