import { createRequire } from 'node:module';
import { basename, dirname } from 'node:path';

/** The platforms that have a package with a node, as Node.js names them. */
export const PACKAGED_PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64', 'win32-x64'] as const;

/** A platform that has a package with a node. */
export type PackagedPlatform = (typeof PACKAGED_PLATFORMS)[number];

/** Returns the name of a platform's package: `@palimpsest/node-linux-x64`. */
export const platformPackageName = (platform: PackagedPlatform): string => `@palimpsest/node-${platform}`;

/** The platform of this process, or undefined if it has no package. */
const ownPlatform = (): PackagedPlatform | undefined =>
  PACKAGED_PLATFORMS.find((name) => name === `${process.platform}-${process.arch}`);

/**
 * Returns the folder of this platform's package, or undefined if it is not installed beside the
 * program. `from` is a file of the program; default: this one.
 */
export function platformPackageFolder(from: string | URL = import.meta.url): string | undefined {
  const platform = ownPlatform();
  if (platform === undefined) return undefined;
  try {
    return dirname(createRequire(from).resolve(`${platformPackageName(platform)}/package.json`));
  } catch {
    return undefined;
  }
}

/**
 * Returns npm's command that removes the program. npm removes the platform's package with it only
 * if it installed that package as a dependency, which is inside the program's folder. `folder` is
 * that of the platform's package, if it is installed.
 */
export function removalCommand(folder: string | undefined): string {
  const program = 'npm uninstall -g palimpsest';
  if (folder === undefined) return program;
  const scope = dirname(folder);
  const isDependency = basename(dirname(dirname(scope))) === 'palimpsest';
  return isDependency ? program : `${program} ${basename(scope)}/${basename(folder)}`;
}
