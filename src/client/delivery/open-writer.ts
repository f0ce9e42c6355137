import type { ObjectId } from '../../objects/ids.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { FileAccess } from '../file-access.js';
import type { KnownVersions } from '../optimistic/known-versions.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';
import { localVersions, NOTHING_WRITTEN } from './session-write.js';
import { SharedWriter } from './shared-writer.js';
import { SoleWriter } from './sole-writer.js';
import type { Delivered, PlannedWrite, Writer } from './writers.js';

/**
 * The writer of a client without a database. The client keeps the versions that it wrote, and its
 * sessions end with it.
 */
class UnstoredWriter implements Writer {
  readonly acknowledgesAtOnce = true;
  readonly ownFiles = undefined;
  readonly #metadata: MetadataCache;
  readonly #versions: KnownVersions;

  constructor(metadata: MetadataCache, versions: KnownVersions) {
    this.#metadata = metadata;
    this.#versions = versions;
  }

  laneOf(name: string): string {
    return name;
  }

  async write({ write }: PlannedWrite): Promise<Delivered> {
    const known = { metadata: this.#metadata, newest: (id: ObjectId) => this.#versions.newest(id) };
    return { result: { ...NOTHING_WRITTEN, written: localVersions(write, known) }, txId: undefined, together: [] };
  }
}

/** The parts and properties of a client that decide about its writer. */
interface WriterParts {
  readonly store: ObjectStore;
  readonly metadata: MetadataCache;
  readonly versions: KnownVersions;
  /** Whether there is a database. */
  readonly isStored: boolean;
  /** Whether no other client writes this client's sessions. */
  readonly isSole: boolean;
  readonly journal: object | undefined;
  /** Finds the authors of files that change outside of a call. */
  readonly files: Pick<FileAccess, 'authorOf'>;
}

/** Returns the writer of a client. */
export function openWriter({ store, metadata, versions, files, isStored, isSole, journal }: WriterParts): Writer {
  if (!isStored) return new UnstoredWriter(metadata, versions);
  // A sole writer, such as a replay, records files of the past, so it looks for no authors.
  return isSole ? new SoleWriter(store, { pipelined: journal === undefined }) : new SharedWriter(store, files.authorOf);
}
