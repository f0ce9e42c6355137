import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NodeError } from './errors.js';

/** The files of this package from which the node is built and started. */
export interface PackageFiles {
  /** Folder with `pom.xml`, `src/` and the node configurations. */
  readonly frontDir: string;
  /** The built command line program, which runs the supervisor. */
  readonly cli: string;
}

/**
 * Finds the files of this package: its root is the nearest folder above this module with
 * `xtdb/pom.xml`.
 * @throws {NodeError} `incomplete-package` if some are missing
 */
export function packageFiles(): PackageFiles {
  let dir = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(dir, 'xtdb', 'pom.xml'))) {
    const parent = dirname(dir);
    if (parent === dir) {
      throw new NodeError(
        'incomplete-package',
        `No xtdb/pom.xml above ${fileURLToPath(import.meta.url)}. Install the package again.`,
      );
    }
    dir = parent;
  }
  const cli = join(dir, 'dist', 'cli.js');
  if (!existsSync(cli)) throw new NodeError('incomplete-package', `${cli} is missing. Build it with: npm run build`);
  return { frontDir: join(dir, 'xtdb'), cli };
}
