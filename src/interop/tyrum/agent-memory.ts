import type { ContextRecord } from '../../objects/context-record.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';
import { agentUuid, itemOf, type MemoryItem, type MemoryTombstone, memoryRecord } from './memory-item.js';

/** What an agent remembers. */
export interface RememberedItems {
  /** The newest version of each, oldest first. */
  readonly items: readonly MemoryItem[];
  /** Of what was forgotten, in the order in which it was. */
  readonly tombstones: readonly MemoryTombstone[];
  /** All tags, also of what was forgotten. */
  readonly tags: ReadonlySet<string>;
}

/** That an item is forgotten. */
export interface Burial {
  readonly item: MemoryItem;
  readonly by: MemoryTombstone['deleted_by'];
  readonly reason?: string;
}

/** What becomes different in a memory, all of it or nothing. */
export interface MemoryChange {
  readonly put: readonly MemoryItem[];
  readonly bury: readonly Burial[];
}

/** Where an agent's memory is kept: what everything else here works with. */
export interface MemoryAdapter {
  readonly agent: string;
  read(): Promise<RememberedItems>;
  /**
   * Changes it as `decide` says of what it holds, all of it or nothing, and resolves to the change that was made. Where somebody else changes in between what is to be changed, it decides again by what is
   * there then: what was forgotten does not come back, and no correction is lost. `at` is when it happened, milliseconds since 1970. Rejects with what `decide` throws; then nothing was changed.
   */
  change(decide: (held: RememberedItems) => MemoryChange, at: number): Promise<MemoryChange>;
}

/** A memory in records of its agent (decision 0016): items have versions, and what is forgotten leaves a tombstone in the same transaction; the database keeps every earlier version. */
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
    return { v: 1, memory_item_id: name, agent_id: agentUuid(this.agent), deleted_at, deleted_by: by, ...defined({ reason }) };
  }
}
