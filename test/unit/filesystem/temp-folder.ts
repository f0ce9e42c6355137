import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A temporary folder for one test. `inside` becomes the root; `outside` lies beside it. */
export interface TempFolder {
  readonly base: string;
  readonly inside: string;
  readonly outside: string;
  /** Writes a file with its parent folders and returns its path. */
  put(path: string, content: string | Uint8Array): Promise<string>;
  remove(): Promise<void>;
}

export async function tempFolder(): Promise<TempFolder> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-fs-')));
  const inside = join(base, 'root');
  const outside = join(base, 'outside');
  await mkdir(inside);
  await mkdir(outside);
  return {
    base,
    inside,
    outside,
    async put(path, content) {
      const file = join(base, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content);
      return file;
    },
    remove: () => rm(base, { recursive: true, force: true }),
  };
}

/** Runs `work` without superuser rights, which override all permissions. */
export async function unprivileged<T>(work: () => Promise<T>): Promise<T> {
  const { geteuid, seteuid } = process;
  if (geteuid === undefined || seteuid === undefined || geteuid() !== 0) return work();
  seteuid(65_534);
  try {
    return await work();
  } finally {
    seteuid(0);
  }
}
