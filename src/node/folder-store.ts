import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { draftOf } from '../process/drafts.js';
import { rename } from '../process/held-files.js';
import { createWholeFile, namesIn, ownedFile, textOf } from '../process/owned-file.js';
import { unlessMissing } from '../process/system-error.js';
import {
  type CheckpointFile,
  type CheckpointStore,
  type CopiedFile,
  filesOf,
  isCheckpointName,
  MANIFEST,
} from './checkpoint.js';

/** Writes a stream to a new file durably and returns its size and hash. Throws system errors. */
export async function writeHashed(from: Readable, to: string): Promise<CopiedFile> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  const hash = createHash('sha256');
  await pipeline(
    from,
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

/**
 * Returns all files below a folder with their relative paths, in order; none if it does not exist.
 * Throws other system errors.
 */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = (await unlessMissing(readdir(folder, { recursive: true, withFileTypes: true }))) ?? [];
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/**
 * The election file and the file that shows the store's time. Killed writers may leave drafts of
 * both.
 */
const OWN_FILES: readonly string[] = ['writing.json', 'now'];

/** Checkpoints in a folder of one host, or of a filesystem that all hosts share. */
export class FolderStore implements CheckpointStore {
  readonly address: string;
  readonly copiesAtOnce = 1;

  /** `address` is an absolute path. */
  constructor(address: string) {
    this.address = address;
  }

  addressOf(path: string): string {
    return join(this.address, path);
  }

  names(): Promise<readonly string[]> {
    return namesIn(this.address);
  }

  filesBelow(path: string): Promise<readonly string[]> {
    return filesBelow(this.addressOf(path));
  }

  text(path: string): Promise<string | undefined> {
    return textOf(this.addressOf(path));
  }

  fetch(path: string, to: string): Promise<CopiedFile> {
    return writeHashed(createReadStream(this.addressOf(path)), to);
  }

  async write(name: string, from: string, manifest: (files: readonly CheckpointFile[]) => string): Promise<void> {
    const path = this.addressOf(name);
    const draft = await draftOf(path);
    try {
      await mkdir(draft, { mode: 0o700 });
      const files: CheckpointFile[] = [];
      for (const file of await filesBelow(from))
        files.push({
          path: file,
          ...(await writeHashed(createReadStream(join(from, file)), join(draft, filesOf(file)))),
        });
      await writeFile(join(draft, MANIFEST), manifest(files), { mode: 0o600, flush: true });
      await rm(path, { recursive: true, force: true });
      await rename(draft, path);
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  async remove(name: string): Promise<void> {
    await rm(this.addressOf(name), { recursive: true, force: true });
  }

  async createOnce(path: string, content: string): Promise<boolean> {
    await mkdir(this.address, { recursive: true, mode: 0o700 });
    return createWholeFile(this.addressOf(path), content);
  }

  async ageMs(path: string): Promise<number | undefined> {
    const probe = await draftOf(this.addressOf('now'));
    try {
      await writeFile(probe, '');
      const [now, then] = await Promise.all([stat(probe), unlessMissing(stat(this.addressOf(path)))]);
      return then === undefined ? undefined : now.mtimeMs - then.mtimeMs;
    } finally {
      await rm(probe, { force: true });
    }
  }

  async removeIf(path: string, content: string): Promise<void> {
    ownedFile(this.addressOf(path), content).remove();
  }

  async sweep(): Promise<void> {
    for (const name of await this.names()) {
      const [begun = ''] = /^[^.]+(?:\.json)?(?=\..+\.draft$)/.exec(name) ?? [];
      if (isCheckpointName(begun) || OWN_FILES.includes(begun)) await this.remove(name);
    }
  }
}
