import type { AgentPath, CanonicalPath, FilesystemId } from '../../objects/ids.js';
import { named, SourceError } from './errors.js';
import type { MountTable } from './mounts.js';
import { type AllowedRoots, absolutePath } from './roots.js';

/** The part of the filesystem that this process may use, and the agent's names for it. */
export interface FilesystemAccess {
  readonly roots: AllowedRoots;
  readonly mounts: MountTable;
}

/** The location of an agent's path. */
export interface Location {
  /** The canonical path. Links are resolved if this process can see them. */
  readonly path: CanonicalPath;
  readonly filesystemId: FilesystemId;
  readonly exists: boolean;
  /**
   * False for a path that only the agent can see, inside its container. Such a path is neither
   * checked nor readable here.
   */
  readonly reachable: boolean;
  /** The path as the agent gave it. */
  readonly shown: string;
}

/** Options for locating an agent's path. */
export interface LocateOptions {
  /** The agent's working directory, in the agent's view. Relative paths start there. */
  readonly cwd: string;
  /** Whether a missing file or folder is rejected with `not-found`; default true. */
  readonly mustExist?: boolean;
}

/**
 * Resolves an agent's path: relative to its working directory, through the mounts [§5.3], links
 * resolved, inside the roots. Throws {@link SourceError}. A path on a filesystem that this process
 * cannot see is only normalised and marked unreachable.
 */
export async function locate(access: FilesystemAccess, path: string, options: LocateOptions): Promise<Location> {
  const { roots, mounts } = access;
  const translated = mounts.toCanonical(absolutePath(path, options.cwd) as string as AgentPath);
  if (!translated.viaMount && !mounts.isReachable(translated.path, translated.filesystemId)) {
    return {
      path: translated.path,
      filesystemId: translated.filesystemId,
      exists: false,
      reachable: false,
      shown: path,
    };
  }
  const resolved = await roots.resolve(translated.path, { mustExist: options.mustExist ?? true, shown: path });
  // A link may lead from one mount into another.
  const filesystemId = mounts.filesystemOfCanonical(resolved.path) ?? translated.filesystemId;
  return { path: resolved.path, filesystemId, exists: resolved.exists, reachable: true, shown: path };
}

/** Returns the error for a location that only the agent can see. */
export function unreachableError(shown: string): SourceError {
  return new SourceError('unreachable', `${named(shown)} is on a filesystem that cannot be reached from here`, {
    path: shown,
  });
}
