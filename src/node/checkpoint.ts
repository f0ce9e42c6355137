import { createHash } from 'node:crypto';
import { join } from 'node:path';
import * as z from 'zod';
import { parseJson, replaceFile, textOf } from '../process/owned-file.js';
import { CodedError } from '../values/coded-error.js';
import { codeOf, messageOf } from '../values/thrown.js';
import { DATA_FORMAT } from './data-folder.js';

/**
 * Why a checkpoint cannot be written or used. `missing`: there is none; `damaged`: it is not as it was written; `unfit`: another version wrote it, or the node has no index that
 * others could use; `index-exists`: the data folder has an index, which a checkpoint would replace; `busy`: another host writes one there;
 * `unreachable`: no node runs that could make one; `io`: the place where checkpoints are kept cannot be read or written.
 */
export type CheckpointErrorCode = 'missing' | 'damaged' | 'unfit' | 'index-exists' | 'busy' | 'unreachable' | 'io';

/** Thrown when a checkpoint of an index cannot be written or used. Nothing was changed. */
export class CheckpointError extends CodedError<CheckpointErrorCode> {
  override readonly name = 'CheckpointError';
}

const manifestSchema = z.object({
  format: z.literal(1),
  /** The name of the log that the index was made from. */
  log: z.string().min(1),
  /** The format of what is in that log. */
  dataFormat: z.int().positive(),
  /** The format of XTDB's index. */
  indexVersion: z.int(),
  /** The transaction that the index holds at least, and its time by the log's own clock. */
  txId: z.int().nonnegative(),
  txTime: z.iso.datetime({ offset: true }),
  /** The host that wrote it. */
  host: z.string(),
  files: z.array(z.object({ path: z.string().min(1), size: z.int().nonnegative(), sha256: z.string().length(64) })),
});

/** What a checkpoint says of itself: which index it is, and its files with their hashes. */
export type CheckpointManifest = Readonly<z.infer<typeof manifestSchema>>;

/** One file of a checkpoint, by its path in the index. */
export type CheckpointFile = CheckpointManifest['files'][number];

/** A checkpoint where checkpoints are kept, as its name and its manifest say: its files have not been looked at. */
export interface FoundCheckpoint extends CheckpointManifest {
  /** Its folder, or its address. */
  readonly path: string;
  /** Its path in the store that it was found in: empty where it is that itself. */
  readonly name: string;
}

/** What was found of a file while it was copied. */
export type CopiedFile = Omit<CheckpointFile, 'path'>;

/**
 * A place where checkpoints of logs are kept for all hosts, or one checkpoint. Paths in it are relative, with `/` between their parts.
 *
 * Each method throws what its system throws, or CheckpointError `io`.
 */
export interface CheckpointStore {
  /** How people name it. */
  readonly address: string;
  /** How many files are best copied at a time. */
  readonly copiesAtOnce: number;
  /** How people name what lies in it. */
  addressOf(path: string): string;
  /** The names of what lies directly in it; none where it is not there. */
  names(): Promise<readonly string[]>;
  /** Every file below a path, relative to it, in order. */
  filesBelow(path: string): Promise<readonly string[]>;
  /** The text of a small file; undefined where there is none. */
  text(path: string): Promise<string | undefined>;
  /** Copies a file to one of this host, durably, and gives its size and hash. */
  fetch(path: string, to: string): Promise<CopiedFile>;
  /** Writes a checkpoint: the files of a folder of this host, and then the manifest that is made from what they are. It appears whole, in place of what has its name. */
  write(name: string, from: string, manifest: (files: readonly CheckpointFile[]) => string): Promise<void>;
  remove(name: string): Promise<void>;
  /** Makes a file that of all hosts only one can make; false where it is there. The first of a place makes the place. */
  createOnce(path: string, content: string): Promise<boolean>;
  /** How old a file is by the place's own clock, milliseconds; undefined where there is none. */
  ageMs(path: string): Promise<number | undefined>;
  /** Removes a file if it still has this content. */
  removeIf(path: string, content: string): Promise<void>;
  /** Removes what writers left that were killed. For the one who is elected to write. */
  sweep(): Promise<void>;
}

/** The environment of a process, of which a store like S3 takes its credentials. */
export type StoreEnvironment = Readonly<Record<string, string | undefined>>;

/** Where in a checkpoint a file of the index lies; all of them without one. */
export const filesOf = (file = ''): string => join('index', file);

/** The file that says what a checkpoint is. */
export const MANIFEST = 'manifest.json';
const NAME = /^checkpoint-[0-9a-f]{8}-\d{12,}$/;
/** Whether a name is one that a checkpoint has: what else lies beside them is somebody else's. */
export const isCheckpointName = (name: string): boolean => NAME.test(name);
const sealedSchema = z.object({ manifest: z.string(), sha256: z.string().length(64) });
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The name of a checkpoint: by log, then by how far it goes. */
export const checkpointName = ({ log, txId }: Pick<CheckpointManifest, 'log' | 'txId'>): string =>
  `checkpoint-${sha256(log).slice(0, 8)}-${String(txId).padStart(12, '0')}`;

/** The text of a manifest file, which shows every change of it. */
export function manifestText(manifest: CheckpointManifest): string {
  const text = JSON.stringify(manifest);
  return `${JSON.stringify({ manifest: text, sha256: sha256(text) }, null, 2)}\n`;
}

const formatSchema = z.looseObject({ format: z.int() });

/**
 * Reads the manifest of a checkpoint in a store; that of the store itself where no name is given.
 * @throws {CheckpointError} `missing`, `damaged`, `io`; `unfit` – a later version wrote it
 */
export async function readManifest(store: CheckpointStore, name = ''): Promise<FoundCheckpoint> {
  const [path, inStore] = [store.addressOf(name), join(name, MANIFEST)];
  const file = store.addressOf(inStore);
  const text = await store.text(inStore).catch((error: unknown) => {
    throw new CheckpointError('io', `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  });
  if (text === undefined) throw new CheckpointError('missing', `there is no checkpoint in ${path}: it has no ${MANIFEST}`);
  const sealed = parseJson(text, sealedSchema);
  if (sealed === undefined || sha256(sealed.manifest) !== sealed.sha256)
    throw new CheckpointError('damaged', `${file} is not as it was written. Take another checkpoint, or start the node without one.`);
  const manifest = parseJson(sealed.manifest, manifestSchema);
  if (manifest !== undefined) return { ...manifest, path, name };
  const format = parseJson(sealed.manifest, formatSchema)?.format;
  throw new CheckpointError(
    'unfit',
    `${file} has format ${format ?? 'unknown'}; this version knows format 1. Use the version that wrote it.`,
  );
}

/** What is none is passed over; one that could not be looked at is not, or nobody would know of it. */
function passOver(error: unknown): undefined {
  if (codeOf(error) === 'io') throw error;
}

/**
 * The checkpoints of a store, or those of one log, the newest of each log first. Those that are damaged or of another format are passed over.
 * @throws {CheckpointError} io – the store cannot be read
 */
export async function listCheckpoints(store: CheckpointStore, log?: string): Promise<readonly FoundCheckpoint[]> {
  const names = await store.names().catch((error: unknown) => {
    throw new CheckpointError('io', `the checkpoints of ${store.address} cannot be read: ${messageOf(error)}`, { cause: error });
  });
  const found = await Promise.all(names.filter(isCheckpointName).map((name) => readManifest(store, name).catch(passOver)));
  return found
    .flatMap((one) => (one === undefined || (log !== undefined && one.log !== log) ? [] : [one]))
    .sort((a, b) => b.txTime.localeCompare(a.txTime) || b.txId - a.txId);
}

/** Refuses a checkpoint of another format. @throws {CheckpointError} unfit */
export function requireFormat({ path, dataFormat }: FoundCheckpoint): void {
  if (dataFormat === DATA_FORMAT) return;
  const next =
    dataFormat > DATA_FORMAT
      ? 'Use the newer version of Palimpsest that wrote it'
      : 'This version would not read it: start the node without it, and it makes its index from the log';
  throw new CheckpointError('unfit', `${path} has data format ${dataFormat}; this version has format ${DATA_FORMAT}. ${next}.`);
}

const rememberedSchema = z.object({ folder: z.string() });
const rememberedFile = (dir: string): string => join(dir, 'checkpoints.json');

/** Notes in a data folder where the checkpoints of its log are kept, so that `node status` can tell of them. */
export const rememberCheckpoints = (dir: string, address: string): Promise<void> =>
  replaceFile(rememberedFile(dir), `${JSON.stringify({ folder: address })}\n`);

/** Where the checkpoints of a data folder's log are kept; undefined where it never had one. */
export async function rememberedCheckpoints(dir: string): Promise<string | undefined> {
  const text = await textOf(rememberedFile(dir)).catch(() => undefined);
  return text === undefined ? undefined : parseJson(text, rememberedSchema)?.folder;
}
