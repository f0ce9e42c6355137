import { homedir } from 'node:os';
import { join } from 'node:path';
import { type ArchivePlan, archiveFolder } from './archive-plan.js';
import { installApart } from './build-apart.js';
import { readFrontFiles } from './front-files.js';
import { findJava, type Java } from './java.js';
import type { PackageFiles } from './package-files.js';
import { archivePlan, findArchive } from './packaged-archive.js';
import { findPackagedNode, type PackagedNode } from './packaged-node.js';

/** Returns the default cache folder for built nodes and class-data archives. */
export const defaultCacheDir = (): string => join(homedir(), '.cache', 'palimpsest');

/** A Java and a class path from which a node can start at once. */
export interface NodeRuntime {
  readonly java: Java;
  readonly jars: readonly string[];
  /** The path of the class-data archive; null to start without one. */
  readonly archive: string | null;
  /** The folder in the cache that this node uses. Unused folders are removed after a week. */
  readonly cached: string;
  /** The archive to make in the background once the node is ready; null if there is none. */
  readonly missing: ArchivePlan | null;
}

/** Options for choosing a runtime. */
export interface RuntimeOptions {
  readonly isShared: boolean;
  readonly memoryConfig: string;
  readonly cacheDir?: string | undefined;
  readonly javaHome?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  onProgress?(message: string): void;
}

/** The Java that a node would start with. */
export interface FoundJava {
  readonly java: Java;
  /** The package that it comes from; undefined for a Java of the machine. */
  readonly packaged: PackagedNode | undefined;
}

/**
 * Finds the Java of a node: the one in this platform's package, or one on the machine.
 * @throws {NodeError} `incomplete-package`, or as `findJava`
 */
export async function findNodeJava(
  { frontDir }: PackageFiles,
  options: { readonly javaHome?: string | undefined; readonly signal?: AbortSignal | undefined },
): Promise<FoundJava> {
  const packaged = await findPackagedNode(await readFrontFiles(frontDir));
  return { java: packaged?.java ?? (await findJava(options)), packaged };
}

/**
 * Chooses the Java and class path of a node. The node in this platform's package runs without a
 * build. Without the package, or for a shared log, the node is built with a JDK on first use.
 * @throws {NodeError} `incomplete-package`, or as `findJava` and `ensureInstallation`
 */
export async function chooseRuntime(files: PackageFiles, options: RuntimeOptions): Promise<NodeRuntime> {
  const { isShared, memoryConfig, cacheDir = defaultCacheDir(), javaHome, signal } = options;
  const { frontDir, cli } = files;
  const front = await readFrontFiles(frontDir);
  const packaged = isShared ? undefined : await findPackagedNode(front);
  if (packaged !== undefined) {
    const plan = archivePlan(packaged, front, { cacheDir, memoryConfig });
    const archive = await findArchive(plan);
    return {
      java: packaged.java,
      jars: packaged.jars,
      archive: archive ?? null,
      cached: archiveFolder(plan),
      missing: archive === undefined ? plan : null,
    };
  }
  const java = await findJava({ javaHome, signal });
  const onProgress = (message: string): void => options.onProgress?.(message);
  const { jars, archive, dir } = await installApart(
    { java, frontDir, isShared, memoryConfig, cacheDir, signal, onProgress },
    cli,
  );
  return { java, jars, archive, cached: dir, missing: null };
}
