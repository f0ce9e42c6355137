import { LRUCache } from 'lru-cache';
import type { FilesystemAccess, Location } from '../filesystem/access/access.js';
import { liesIn, type MountSetting, MountTable } from '../filesystem/access/mounts.js';
import { fromNative, resolveFrom } from '../filesystem/access/native-path.js';
import { readSource, type SourceReading } from '../filesystem/access/read-source.js';
import { AllowedRoots, absolutePath } from '../filesystem/access/roots.js';
import { gitAuthor } from '../filesystem/tracking/git-move.js';
import { sourcedIdentityHash } from '../objects/hashes.js';
import { type AgentPath, canonicalPath, type FilesystemId, type ObjectId } from '../objects/ids.js';
import { type FilesystemSource, filesystemSource } from '../objects/source.js';
import { counted } from '../values/counted.js';
import { DeferredWork } from '../values/deferred-work.js';
import type { FindAuthor } from './decide-file.js';

/** The files that a client may use, and how its agent names them [§5.2, §5.3]. */
export interface FileAccessOptions {
  /** Host folders that the agent may use. Files outside them are neither read nor written. */
  readonly roots: readonly string[];
  /** Base of the agent's relative paths, as the agent sees it. */
  readonly cwd: string;
  readonly mounts?: readonly MountSetting[];
  /** Identity of this process's filesystem [§5.4]. */
  readonly filesystemId: FilesystemId;
  /** The filesystem of paths without a mount, if the agent runs in a separate sandbox. */
  readonly agentFilesystemId?: FilesystemId;
}

/** A path that an agent named, as the source of an object. */
export interface LocatedFile {
  readonly location: Location;
  readonly source: FilesystemSource;
  readonly id: ObjectId;
  /** The path as the agent sees it [§4.1]. */
  readonly display: string;
}

/**
 * Ids of recently named files, because listings repeat names. The cache is filled after the call,
 * so that the response goes first.
 */
const recentIds = new LRUCache<string, ObjectId>(counted(10_000));
const deferred = new DeferredWork();
/** The last answer, because a call asks for the id of its file several times. */
let latest: { readonly source: FilesystemSource; readonly id: ObjectId } | undefined;

/** Returns the object id of a file [§2.5]. */
export function fileObjectId(source: FilesystemSource): ObjectId {
  if (latest?.source === source) return latest.id;
  deferred.flush();
  const key = `${source.filesystemId}\0${source.path}`;
  const known = recentIds.get(key);
  const id = known ?? (sourcedIdentityHash('file', source) as string as ObjectId);
  if (known === undefined) deferred.add(() => recentIds.set(key, id));
  latest = { source, id };
  return id;
}

/** Locates, reads and names the files of one client, always inside the allowed roots. */
export class FileAccess {
  readonly access: FilesystemAccess;
  readonly cwd: string;
  /**
   * Folders whose stored files the agent may see, whichever client stored them. They are the roots,
   * and the whole filesystem of a separate sandbox.
   */
  readonly folders: readonly FilesystemSource[];

  /** Finds the author of a change that no call made. Never rejects. */
  readonly authorOf: FindAuthor = (source, reading) => gitAuthor(this.access, source, reading).catch(() => undefined);

  /** `cwd` is the agent's working directory, as the agent sees it. */
  constructor(access: FilesystemAccess, cwd: string) {
    this.access = access;
    this.cwd = cwd;
    const { roots, mounts } = access;
    const { defaultFilesystemId, localFilesystemId } = mounts;
    this.folders = [
      ...roots.roots.map((root) => filesystemSource(localFilesystemId, root)),
      ...(defaultFilesystemId === localFilesystemId ? [] : [filesystemSource(defaultFilesystemId, canonicalPath('/'))]),
    ];
  }

  /** @throws {SourceError} a root does not exist or a mount is malformed */
  static async open(options: FileAccessOptions): Promise<FileAccess> {
    const mounts = new MountTable({
      mappings: options.mounts ?? [],
      defaultFilesystemId: options.agentFilesystemId ?? options.filesystemId,
      localFilesystemId: options.filesystemId,
    });
    const places = mounts.mappings.map(({ canonicalPrefix }) => canonicalPrefix);
    const roots = await AllowedRoots.open(options.roots, places);
    return new FileAccess({ roots, mounts }, fromNative(options.cwd));
  }

  /**
   * Resolves an agent's path against its working directory, the mounts [§5.3] and links. The result
   * must lie inside the roots. If this process cannot see the path's filesystem, the path is only
   * normalised and marked unreachable.
   * @throws {SourceError} the path leads outside the roots, or the file does not exist and
   *   `mustExist` is not false
   */
  async locate(path: string, { mustExist = true }: { readonly mustExist?: boolean } = {}): Promise<LocatedFile> {
    const location = await this.#locationOf(path, mustExist);
    return { location, ...this.describe(filesystemSource(location.filesystemId, location.path)) };
  }

  async #locationOf(shown: string, mustExist: boolean): Promise<Location> {
    const { roots, mounts } = this.access;
    const translated = mounts.toCanonical(absolutePath(shown, this.cwd) as string as AgentPath);
    const { path, filesystemId } = translated;
    if (!translated.viaMount && !mounts.isReachable(path, filesystemId))
      return { path, filesystemId, exists: false, reachable: false, shown };
    const resolved = await roots.resolve(path, { mustExist, shown });
    return {
      path: resolved.path,
      // A link may lead from one mount into another.
      filesystemId: mounts.filesystemOfCanonical(resolved.path) ?? filesystemId,
      exists: resolved.exists,
      reachable: true,
      shown,
    };
  }

  /** Returns the id and display path of a source. */
  describe(source: FilesystemSource): {
    readonly source: FilesystemSource;
    readonly id: ObjectId;
    readonly display: string;
  } {
    return { source, id: fileObjectId(source), display: this.display(source) };
  }

  /** Returns whether the agent may see a stored file or folder. */
  shows(source: FilesystemSource): boolean {
    return liesIn(source, this.folders);
  }

  /** Returns the path of a source as the agent sees it [§5.3]. */
  display(source: FilesystemSource): string {
    return this.access.mounts.toDisplay(source.path, source.filesystemId);
  }

  /** Resolves a path of the agent against its working directory. */
  here(path: string): readonly string[] {
    return [resolveFrom(this.cwd, path)];
  }

  /** Returns the sources that an absolute path of the agent or the host may name. */
  sourcesAt(path: string): readonly FilesystemSource[] {
    return this.access.mounts.sourcesAt(path);
  }

  /** Reads a source once (divergence C1). Failures are returned, not thrown. */
  read(source: FilesystemSource, signal?: AbortSignal): Promise<SourceReading> {
    return readSource(this.access, source, signal === undefined ? {} : { signal });
  }
}
