import type { ContextRecord } from '../../objects/context-record.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { agentUuid, itemOf, type MemoryItem, type MemoryTombstone, memoryRecord } from './memory-item.js';

/** The contents of an agent's memory. */
export interface RememberedItems {
  /** The newest version of each item, oldest first. */
  readonly items: readonly MemoryItem[];
  /** The tombstones of forgotten items, in the order of deletion. */
  readonly tombstones: readonly MemoryTombstone[];
  /** All tags, including those of forgotten items. */
  readonly tags: ReadonlySet<string>;
}

/** The deletion of an item. */
export interface Burial {
  readonly item: MemoryItem;
  readonly by: MemoryTombstone['deleted_by'];
  readonly reason?: string;
}

/** A change of a memory. It is applied completely or not at all. */
export interface MemoryChange {
  readonly put: readonly MemoryItem[];
  readonly bury: readonly Burial[];
}

/** The storage of an agent's memory, as the other code of this contract uses it. */
export interface MemoryAdapter {
  readonly agent: string;
  read(): Promise<RememberedItems>;
  /**
   * Applies the change that `decide` derives from the contents, and resolves to it. The change is
   * atomic. If a concurrent change touches the same items, `decide` runs again on the new contents.
   * So no deletion or correction is lost. `at` is the time of the change in milliseconds since
   * 1970. If `decide` throws, rejects with its error and changes nothing.
   */
  change(decide: (held: RememberedItems) => MemoryChange, at: number): Promise<MemoryChange>;
}

/**
 * An agent's memory in context records (decision 0016). Items have versions. Forgetting an item
 * adds a tombstone in the same transaction. The database keeps every earlier version.
 */
export class RecordMemory implements MemoryAdapter {
  readonly #store: Pick<ObjectStore, 'latest' | 'putRecords'>;

  constructor(
    store: Pick<ObjectStore, 'latest' | 'putRecords'>,
    readonly agent: string,
  ) {
    this.#store = store;
  }

  async read(): Promise<RememberedItems> {
    return this.#heldAt(await this.#store.latest());
  }

  async change(decide: (held: RememberedItems) => MemoryChange, at: number): Promise<MemoryChange> {
    let made: MemoryChange = { put: [], bury: [] };
    await this.#store.putRecords(async (snapshot) => {
      made = decide(await this.#heldAt(snapshot));
      return this.#records(made, at);
    });
    return made;
  }

  async #heldAt(snapshot: StoreSnapshot): Promise<RememberedItems> {
    const records = await snapshot.records({ agent: this.agent }, { kinds: ['memory', 'tombstone'] });
    const kept = records.flatMap((record) => (record.kind === 'memory' ? [record] : []));
    return {
      items: kept.flatMap((record) => itemOf(record) ?? []),
      tombstones: records.flatMap((record) => (record.kind === 'tombstone' ? [this.#tombstone(record)] : [])),
      tags: new Set(kept.flatMap(({ body }) => body.tags)),
    };
  }

  #records({ put, bury }: MemoryChange, at: number): readonly ContextRecord[] {
    const { agent } = this;
    return [
      ...put.map((item) => memoryRecord(item, { agent, at })),
      ...bury.flatMap(({ item, by, reason }): readonly ContextRecord[] => [
        memoryRecord(item, { agent, at }, true),
        {
          kind: 'tombstone',
          owner: { agent },
          turn: 0,
          seq: 0,
          at,
          basis: null,
          body: { name: item.memory_item_id, by, ...defined({ reason }) },
        },
      ]),
    ];
  }

  #tombstone({ at, body }: ContextRecord<'tombstone'>): MemoryTombstone {
    const { name, by, reason } = body;
    const deleted_at = new Date(at).toISOString();
    return {
      v: 1,
      memory_item_id: name,
      agent_id: agentUuid(this.agent),
      deleted_at,
      deleted_by: by,
      ...defined({ reason }),
    };
  }
}
