import { createHash } from 'node:crypto';
import { open, readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** The files of the front by path in its folder. */
export type FrontFiles = ReadonlyMap<string, Buffer>;

/**
 * Part of every key. Increase it if the layout changes, so that older installations do not match.
 */
const LAYOUT = 'installation-2';

/** Returns the key of an installation. Keys are equal only if jars, sources and JVM are equal. */
export function installationKey(parts: { readonly java: string; readonly files: FrontFiles }): string {
  const hash = createHash('sha256');
  // Length prefixes keep different lists of parts distinct.
  const add = (part: string | Buffer): void => {
    const bytes = Buffer.from(part);
    hash.update(`${bytes.length}:`).update(bytes);
  };
  add(LAYOUT);
  add(parts.java);
  for (const [name, bytes] of [...parts.files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    add(name);
    add(bytes);
  }
  return hash.digest('hex').slice(0, 16);
}

/**
 * The file with the SHA-256 of every library of the node, in `sha256sum` format. Libraries from
 * Maven and from the cache must match it.
 */
export const PINNED = 'jars.sha256';

/** The subfolder of the front with the files that only a node over a shared log needs. */
export const SHARED = 'shared';

/**
 * Reads the sources of an installation: `pom.xml`, the pinned libraries and everything under `src`,
 * by path in `frontDir` (with `/`). With `isShared` it adds those of the folder `shared`.
 */
export async function readFrontFiles(
  frontDir: string,
  { isShared = false }: { readonly isShared?: boolean } = {},
): Promise<FrontFiles> {
  const folders = [frontDir, ...(isShared ? [join(frontDir, SHARED)] : [])];
  const listed = await Promise.all(
    folders.map((folder) => readdir(join(folder, 'src'), { recursive: true, withFileTypes: true })),
  );
  const paths = [
    ...folders.flatMap((folder) => [join(folder, 'pom.xml'), join(folder, PINNED)]),
    ...listed.flat().flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : [])),
  ];
  const files = await Promise.all(
    paths.map(async (path) => [relative(frontDir, path).split(sep).join('/'), await readFile(path)] as const),
  );
  return new Map(files);
}

/** Returns the SHA-256 of a file. `buffer` is reused for several files. */
export async function sha256Of(path: string, buffer: Buffer = Buffer.allocUnsafe(262_144)): Promise<string> {
  const file = await open(path);
  try {
    const hash = createHash('sha256');
    for (let { bytesRead } = await file.read(buffer); bytesRead > 0; { bytesRead } = await file.read(buffer)) {
      hash.update(buffer.subarray(0, bytesRead));
    }
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}

/** Returns the required SHA-256 per library. */
export function pinnedJars(files: FrontFiles): ReadonlyMap<string, string> {
  const lists = [PINNED, `${SHARED}/${PINNED}`].map((name) => files.get(name)?.toString('utf8') ?? '');
  const lines = lists.join('').split('\n').filter(Boolean);
  return new Map(lines.map((line) => [line.slice(64).trim(), line.slice(0, 64)]));
}

/** Returns the files of a folder that are missing or do not have the required SHA-256. */
export async function changedFiles(dir: string, hashes: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const changed: string[] = [];
  // Reads one file after another into one buffer. Otherwise an agent's server that starts the node
  // would keep the memory of a hundred files.
  const buffer = Buffer.allocUnsafe(262_144);
  for (const [name, hash] of hashes) {
    if ((await sha256Of(join(dir, name), buffer).catch(() => undefined)) !== hash) changed.push(name);
  }
  return changed;
}
