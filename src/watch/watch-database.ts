import type { MaskLoader } from '../client/record-mask.js';
import { openMask } from '../host/open-mask.js';
import type { NodeUse } from '../host/open-store.js';
import { maskSetting } from '../host/settings.js';
import type { ImportInto } from '../own-sessions/import-session.js';
import { ObjectStore } from '../store/object-store.js';
import type { NodeAddress } from '../xtdb/address.js';
import { XtdbClient } from '../xtdb/xtdb-client.js';

/** How long the database stays open after its last use, in milliseconds. Then the node may end. */
const LINGER_MS = 60_000;

/** An open database with its node. */
interface OpenDatabase {
  readonly into: Pick<ImportInto, 'database' | 'store'>;
  address(): Promise<NodeAddress>;
  close(): Promise<void>;
}

/**
 * The data folder's database, shared by all imports of the process. It opens on the first use and
 * closes some time after the last use, so that an idle process does not keep a node running.
 */
export class WatchDatabase {
  readonly dataDir: string;
  readonly #openNode: () => Pick<NodeUse, 'address' | 'release'>;
  readonly #lingerMs: number;
  #open: OpenDatabase | undefined;
  #uses = 0;
  #closing: NodeJS.Timeout | undefined;

  /** `openNode` starts using the data folder's node. */
  constructor(dataDir: string, openNode: () => Pick<NodeUse, 'address' | 'release'>, lingerMs = LINGER_MS) {
    this.dataDir = dataDir;
    this.#openNode = openNode;
    this.#lingerMs = lingerMs;
  }

  /** Runs work with the database. The node is found or started by the first request. */
  async use<T>(work: (into: OpenDatabase['into']) => Promise<T>): Promise<T> {
    clearTimeout(this.#closing);
    this.#uses += 1;
    this.#open ??= this.#begin();
    try {
      return await work(this.#open.into);
    } finally {
      this.#uses -= 1;
      if (this.#uses === 0) {
        this.#closing = setTimeout(() => void this.close(), this.#lingerMs);
        this.#closing.unref();
      }
    }
  }

  /** Returns the node's address. Call it only while the database is used. */
  readonly address = (): Promise<NodeAddress> => {
    this.#open ??= this.#begin();
    return this.#open.address();
  };

  /** Opens the mask for recorded data. */
  readonly mask: MaskLoader = () => openMask(this.dataDir, maskSetting(process.env));

  /** Closes the database if nothing uses it. Idempotent. */
  async close(): Promise<void> {
    clearTimeout(this.#closing);
    const open = this.#open;
    if (this.#uses > 0 || open === undefined) return;
    this.#open = undefined;
    await open.close();
  }

  #begin(): OpenDatabase {
    const { dataDir } = this;
    const use = this.#openNode();
    const address = () => use.address();
    const xtdb = new XtdbClient(address);
    const store = new ObjectStore(xtdb);
    return {
      address,
      into: {
        database: {
          address,
          dataDir,
          mask: this.mask,
          close: async () => undefined,
        },
        store,
      },
      close: async () => {
        await store.close();
        await xtdb.close();
        await use.release();
      },
    };
  }
}
