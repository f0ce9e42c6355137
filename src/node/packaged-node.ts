import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { platformPackageFolder } from '../process/platform-package.js';
import { messageOf } from '../values/thrown.js';
import { NodeError } from './errors.js';
import { changedFiles, type FrontFiles, installationKey } from './front-files.js';
import type { Java } from './java.js';

/** The file in a platform's package that describes the node in it. */
export const NODE_MANIFEST = 'node.json';

const manifestSchema = z.object({
  /** Name and version of the package. */
  package: z.string(),
  /** The key of the sources that the front was compiled from. */
  front: z.string(),
  java: z.object({ command: z.string(), major: z.int(), fingerprint: z.string() }),
  /** The class path in order, relative to the package. */
  jars: z.array(z.string()).min(2),
  /** The SHA-256 of each jar. */
  sha256: z.record(z.string(), z.string()),
});

/** A node with its Java runtime, ready to run, from a platform's package. */
export interface PackagedNode {
  /** Name and version of the package. */
  readonly package: string;
  /** The folder of the package. */
  readonly dir: string;
  readonly java: Java;
  /** The class path in order; the compiled front comes first. */
  readonly jars: readonly string[];
}

/** Returns the key of a front's sources. It is the same for every Java. */
export const frontKey = (files: FrontFiles): string => installationKey({ java: '', files });

/**
 * Finds the node in this platform's package; undefined if the package is not installed. `from` is
 * the file whose packages are searched; default: the program's.
 * @throws {NodeError} `incomplete-package` if the package is damaged or belongs to another version
 *   of the program
 */
export async function findPackagedNode(
  files: FrontFiles,
  from: string | URL = import.meta.url,
): Promise<PackagedNode | undefined> {
  const dir = platformPackageFolder(from);
  if (dir === undefined) return undefined;
  const remedy = 'Install palimpsest and this package again in the same version, or remove the package to use a JDK.';
  const manifest = await readFile(join(dir, NODE_MANIFEST), 'utf8')
    .then((text) => manifestSchema.parse(JSON.parse(text)))
    .catch((cause: unknown) => {
      throw new NodeError(
        'incomplete-package',
        `${join(dir, NODE_MANIFEST)} cannot be read (${messageOf(cause)}). ${remedy}`,
        { cause },
      );
    });
  if (manifest.front !== frontKey(files)) {
    throw new NodeError(
      'incomplete-package',
      `${manifest.package} in ${dir} contains the node of another version of palimpsest. ${remedy}`,
    );
  }
  const changed = await changedFiles(dir, new Map(manifest.jars.map((jar) => [jar, manifest.sha256[jar] ?? ''])));
  if (changed.length > 0) {
    throw new NodeError(
      'incomplete-package',
      `${manifest.package} in ${dir} is damaged: ${changed.slice(0, 5).join(', ')} is missing or was changed. ` +
        remedy,
    );
  }
  return {
    package: manifest.package,
    dir,
    java: { ...manifest.java, command: join(dir, manifest.java.command) },
    jars: manifest.jars.map((jar) => join(dir, jar)),
  };
}
