import { posix } from 'node:path';
import { LRUCache } from 'lru-cache';
import { type FilesystemAccess, type Location, locate } from '../filesystem/access/access.js';
import { liesIn, type MountSetting, MountTable } from '../filesystem/access/mounts.js';
import { readSource, type SourceReading } from '../filesystem/access/read-source.js';
import { AllowedRoots } from '../filesystem/access/roots.js';
import { sourcedIdentityHash } from '../objects/hashes.js';
import { canonicalPath, type FilesystemId, type ObjectId } from '../objects/ids.js';
import { type FilesystemSource, filesystemSource } from '../objects/source.js';
import { counted } from '../values/counted.js';
import { PutOff } from '../values/put-off.js';

/** Which files a client may use and how its agent names them [§5.2, §5.3]. */
export interface FileAccessOptions {
  /** Folders on the host that the agent may use; nothing outside them is read or written. */
  readonly roots: readonly string[];
  /** Where relative paths of the agent start, as the agent sees it. */
  readonly cwd: string;
  readonly mounts?: readonly MountSetting[];
  /** Identity of the filesystem that this process sees [§5.4]. */
  readonly filesystemId: FilesystemId;
  /** The filesystem of paths that no mount covers, where the agent lives in a sandbox of its own. */
  readonly agentFilesystemId?: FilesystemId;
}

/** A place that an agent named, as a source of an object. */
export interface LocatedFile {
  readonly location: Location;
  readonly source: FilesystemSource;
  readonly id: ObjectId;
  /** The path as the agent sees it [§4.1]. */
  readonly display: string;
}

/** Ids of the files that were named last: listings name the same ones again and again. What a call has named comes into it behind the call. */
const recentIds = new LRUCache<string, ObjectId>(counted(10_000));
const late = new PutOff();
/** A call asks for the id of the file that it reads several times. */
let latest: { readonly source: FilesystemSource; readonly id: ObjectId } | undefined;

/** The object id of a file [§2.5]. */
export function fileObjectId(source: FilesystemSource): ObjectId {
  if (latest?.source === source) return latest.id;
  late.now();
  const key = `${source.filesystemId}\0${source.path}`;
  const known = recentIds.get(key);
  const id = known ?? (sourcedIdentityHash('file', source) as string as ObjectId);
  if (known === undefined) late.add(() => recentIds.set(key, id));
  latest = { source, id };
  return id;
}

/** The files of one client: locating, reading and naming them, always inside the allowed roots. */
export class FileAccess {
  readonly access: FilesystemAccess;
  readonly cwd: string;
  /** The folders whose files are shown, whoever brought them into the database: the roots, and all of a filesystem that only the agent sees. */
  readonly folders: readonly FilesystemSource[];

  private constructor(access: FilesystemAccess, cwd: string) {
    this.access = access;
    this.cwd = cwd;
    const { roots, mounts } = access;
    const { defaultFilesystemId, localFilesystemId } = mounts;
    this.folders = [
      ...roots.roots.map((root) => filesystemSource(localFilesystemId, root)),
      ...(defaultFilesystemId === localFilesystemId ? [] : [filesystemSource(defaultFilesystemId, canonicalPath('/'))]),
    ];
  }

  /** @throws {SourceError} when a root does not exist or a mount is malformed */
  static async open(options: FileAccessOptions): Promise<FileAccess> {
    const mounts = new MountTable({
      mappings: options.mounts ?? [],
      defaultFilesystemId: options.agentFilesystemId ?? options.filesystemId,
      localFilesystemId: options.filesystemId,
    });
    const places = mounts.mappings.map(({ canonicalPrefix }) => canonicalPrefix);
    return new FileAccess({ roots: await AllowedRoots.open(options.roots, places), mounts }, options.cwd);
  }

  /** What the agent means by a path; throws SourceError when it leads outside the roots or, unless `mustExist` is false, nowhere. */
  async locate(path: string, options: { readonly mustExist?: boolean } = {}): Promise<LocatedFile> {
    const location = await locate(this.access, path, { cwd: this.cwd, ...options });
    return { location, ...this.describe(filesystemSource(location.filesystemId, location.path)) };
  }

  /** Id and display path of a source. */
  describe(source: FilesystemSource): { readonly source: FilesystemSource; readonly id: ObjectId; readonly display: string } {
    return { source, id: fileObjectId(source), display: this.display(source) };
  }

  /** Whether what the database holds of a source may be shown here, a file or a folder. */
  shows(source: FilesystemSource): boolean {
    return liesIn(source, this.folders);
  }

  /** The path of a source as the agent sees it [§5.3]. */
  display(source: FilesystemSource): string {
    return this.access.mounts.toDisplay(source.path, source.filesystemId);
  }

  /** The path that a relative one of the agent stands for. */
  here(path: string): readonly string[] {
    return [posix.resolve(this.cwd, path)];
  }

  /** Reads a source once (divergence C1); what is wrong with it is answered, not thrown. */
  read(source: FilesystemSource, signal?: AbortSignal): Promise<SourceReading> {
    return readSource(this.access, source, signal === undefined ? {} : { signal });
  }
}
