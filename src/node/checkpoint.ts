import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import * as z from 'zod';
import { namesIn, parseJson, replaceFile, textOf } from '../process/owned-file.js';
import { CodedError } from '../values/coded-error.js';
import { messageOf } from '../values/thrown.js';
import { DATA_FORMAT } from './data-folder.js';

/**
 * Why a checkpoint cannot be written or used. `missing`: there is none; `damaged`: it is not as it was written; `unfit`: another version wrote it, or the node has no index that
 * others could use; `busy`: another host writes one there; `unreachable`: no node runs that could make one; `io`: the folder cannot be read or written.
 */
export type CheckpointErrorCode = 'missing' | 'damaged' | 'unfit' | 'busy' | 'unreachable' | 'io';

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

/** A checkpoint in a folder, as its name and its manifest say: its files have not been looked at. */
export interface FoundCheckpoint extends CheckpointManifest {
  readonly path: string;
}

/** The folder of the files in a checkpoint. */
export const filesOf = (path: string): string => join(path, 'index');

/** The file that says what a checkpoint is. */
export const MANIFEST = 'manifest.json';
const NAME = /^checkpoint-[0-9a-f]{8}-\d{12,}$/;
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
 * Reads the manifest of a checkpoint.
 * @throws {CheckpointError} `missing`, `damaged`; `unfit` – a later version wrote it
 */
export async function readManifest(path: string): Promise<FoundCheckpoint> {
  const file = join(path, MANIFEST);
  const text = await textOf(file).catch((error: unknown) => {
    throw new CheckpointError('io', `${file} cannot be read: ${messageOf(error)}`, { cause: error });
  });
  if (text === undefined) throw new CheckpointError('missing', `there is no checkpoint in ${path}: it has no ${MANIFEST}`);
  const sealed = parseJson(text, sealedSchema);
  if (sealed === undefined || sha256(sealed.manifest) !== sealed.sha256)
    throw new CheckpointError('damaged', `${file} is not as it was written. Take another checkpoint, or start the node without one.`);
  const manifest = parseJson(sealed.manifest, manifestSchema);
  if (manifest !== undefined) return { ...manifest, path };
  const format = parseJson(sealed.manifest, formatSchema)?.format;
  throw new CheckpointError(
    'unfit',
    `${file} has format ${format ?? 'unknown'}; this version knows format 1. Use the version that wrote it.`,
  );
}

/** The checkpoints of a folder, the newest of each log first. Those that cannot be read are passed over. @throws {CheckpointError} io – the folder cannot be read */
export async function listCheckpoints(folder: string, log?: string): Promise<readonly FoundCheckpoint[]> {
  const names = await namesIn(folder).catch((error: unknown) => {
    throw new CheckpointError('io', `the folder of checkpoints ${folder} cannot be read: ${messageOf(error)}`, { cause: error });
  });
  const found = await Promise.all(
    names.filter((name) => NAME.test(name)).map((name) => readManifest(join(folder, name)).catch(() => undefined)),
  );
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

/** Every file below a folder, by its path in it, in order. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** Copies a file, durably, and gives its size and hash. Throws what the system throws. */
export async function copyHashed(from: string, to: string): Promise<{ readonly size: number; readonly sha256: string }> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  const hash = createHash('sha256');
  await pipeline(
    createReadStream(from),
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(to, { mode: 0o600, flush: true }),
  );
  return { size: (await stat(to)).size, sha256: hash.digest('hex') };
}

const rememberedSchema = z.object({ folder: z.string() });
const rememberedFile = (dir: string): string => join(dir, 'checkpoints.json');

/** Notes in a data folder where the checkpoints of its log are kept, so that `node status` can tell of them. */
export const rememberCheckpoints = (dir: string, folder: string): Promise<void> =>
  replaceFile(rememberedFile(dir), `${JSON.stringify({ folder })}\n`);

/** Where the checkpoints of a data folder's log are kept; undefined where it never had one. */
export async function rememberedCheckpoints(dir: string): Promise<string | undefined> {
  const text = await textOf(rememberedFile(dir)).catch(() => undefined);
  return text === undefined ? undefined : parseJson(text, rememberedSchema)?.folder;
}
