import { LRUCache } from 'lru-cache';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import { canonicalPath, type FilesystemId } from '../../objects/ids.js';
import { filesystemSource } from '../../objects/source.js';
import { ObjectStore } from '../../store/object-store.js';
import { NO_TELEMETRY } from '../../telemetry/telemetry.js';
import { counted } from '../../values/counted.js';
import type { NodeAddress } from '../../xtdb/address.js';
import { XtdbClient } from '../../xtdb/xtdb-client.js';
import type { FileObservation } from '../decide-file.js';
import { Outbox } from '../delivery/outbox.js';
import { SharedWriter } from '../delivery/shared-writer.js';
import { FileAccess } from '../file-access.js';
import { KnownVersions } from '../optimistic/known-versions.js';
import { MetadataCache } from '../optimistic/metadata-cache.js';

/** The database of recorded files, and the filesystem that they are on. */
export interface FileRecorderOptions {
  readonly address: NodeAddress | (() => Promise<NodeAddress>);
  /** Identity of this process's filesystem [§5.4]. */
  readonly filesystemId: FilesystemId;
}

/** The files of one root, and their way to the database. */
interface RecordedRoot {
  readonly files: FileAccess;
  readonly outbox: Outbox;
}

/** Number of roots whose files are known without a query. */
const MOST_ROOTS = 50;

/**
 * Stores the present versions of files for no session [§5.6]. Unlike a client, it serves any number
 * of roots. The caller closes it.
 */
export class FileRecorder {
  readonly #xtdb: XtdbClient;
  readonly #store: ObjectStore;
  readonly #filesystemId: FilesystemId;
  readonly #roots = new LRUCache<string, Promise<RecordedRoot>>(counted(MOST_ROOTS));

  constructor({ address, filesystemId }: FileRecorderOptions) {
    this.#xtdb = new XtdbClient(address);
    this.#store = new ObjectStore(this.#xtdb);
    this.#filesystemId = filesystemId;
  }

  /**
   * Reads files and stores the versions that differ from the newest ones. Returns the readings in
   * order; undefined for a file outside the root. A file that cannot be read is not stored.
   * @throws {SourceError} the root does not exist
   * @throws {XtdbError} the versions were not stored
   */
  async record(root: string, paths: readonly string[]): Promise<readonly (SourceReading | undefined)[]> {
    const { files, outbox } = await this.#rootAt(root);
    const found = await Promise.all(
      paths.map(async (path): Promise<Extract<FileObservation, { kind: 'read' }> | undefined> => {
        const source = filesystemSource(this.#filesystemId, canonicalPath(path));
        if (!files.shows(source)) return undefined;
        return { kind: 'read', source, reading: await files.read(source) };
      }),
    );
    const readable = found.filter((one) => one !== undefined).filter(({ reading }) => !UNREAD.has(reading.kind));
    if (readable.length > 0) await outbox.index(readable, Date.now());
    return found.map((one) => one?.reading);
  }

  async close(): Promise<void> {
    await this.#store.close();
    await this.#xtdb.close();
  }

  #rootAt(root: string): Promise<RecordedRoot> {
    const known = this.#roots.get(root);
    if (known !== undefined) return known;
    const opened = this.#open(root);
    this.#roots.set(root, opened);
    opened.catch(() => this.#roots.delete(root));
    return opened;
  }

  async #open(root: string): Promise<RecordedRoot> {
    const files = await FileAccess.open({ roots: [root], cwd: root, filesystemId: this.#filesystemId });
    const metadata = new MetadataCache(files);
    const parts = { store: this.#store, writer: new SharedWriter(this.#store), telemetry: NO_TELEMETRY };
    return { files, outbox: new Outbox({ ...parts, metadata, versions: new KnownVersions(metadata) }) };
  }
}

/** Readings that say nothing about the file's content. */
const UNREAD: ReadonlySet<SourceReading['kind']> = new Set(['unreachable', 'not-regular']);

/** Returns the whole text of a reading, null for a missing file, undefined for other content. */
export function textOfReading(reading: SourceReading): string | null | undefined {
  if (reading.kind === 'missing') return null;
  return reading.kind === 'text' ? reading.content : undefined;
}
