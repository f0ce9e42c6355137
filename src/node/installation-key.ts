import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

/** Raised when the layout of an installation changes, so that older ones are not taken for current. */
const LAYOUT = 'installation-1';

/** The key of an installation: equal only when the jars, the sources and the JVM are. */
export function installationKey(parts: { readonly java: string; readonly files: ReadonlyMap<string, Buffer> }): string {
  const hash = createHash('sha256');
  // Lengths in front keep two different lists of parts from ever reading alike.
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

/** The files that an installation is made from, `pom.xml` and everything under `src`, by their path in `frontDir` (with `/`). */
export async function readFrontFiles(frontDir: string): Promise<ReadonlyMap<string, Buffer>> {
  const entries = await readdir(join(frontDir, 'src'), { recursive: true, withFileTypes: true });
  const paths = [
    join(frontDir, 'pom.xml'),
    ...entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)),
  ];
  const files = await Promise.all(
    paths.map(async (path) => [relative(frontDir, path).split(sep).join('/'), await readFile(path)] as const),
  );
  return new Map(files);
}
