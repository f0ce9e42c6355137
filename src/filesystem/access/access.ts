import type { CanonicalPath, FilesystemId } from '../../objects/ids.js';
import { named, SourceError } from './errors.js';
import type { MountTable } from './mounts.js';
import type { AllowedRoots } from './roots.js';

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

/** Returns the error for a location that only the agent can see. */
export function unreachableError(shown: string): SourceError {
  return new SourceError('unreachable', `${named(shown)} is on a filesystem that cannot be reached from here`, {
    path: shown,
  });
}
