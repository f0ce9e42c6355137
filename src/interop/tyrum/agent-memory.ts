import type { ContextRecord } from '../../objects/context-record.js';
import type { ObjectStore } from '../../store/object-store.js';
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
  /** `at` is when it happened, milliseconds since 1970. */
  change(change: MemoryChange, at: number): Promise<void>;
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
    const records = await (await this.#store.latest()).records({ agent: this.agent }, { kinds: ['memory', 'tombstone'] });
    const kept = records.flatMap((record) => (record.kind === 'memory' ? [record] : []));
    return {
      items: kept.flatMap((record) => itemOf(record) ?? []),
      tombstones: records.flatMap((record) => (record.kind === 'tombstone' ? [this.#tombstone(record)] : [])),
      tags: new Set(kept.flatMap(({ body }) => body.tags)),
    };
  }

  async change({ put, bury }: MemoryChange, at: number): Promise<void> {
    const { agent } = this;
    const records: readonly ContextRecord[] = [
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
    if (records.length > 0) await this.#store.putRecords(records);
  }

  #tombstone({ at, body }: ContextRecord<'tombstone'>): MemoryTombstone {
    const { name, by, reason } = body;
    const deleted_at = new Date(at).toISOString();
    return { v: 1, memory_item_id: name, agent_id: agentUuid(this.agent), deleted_at, deleted_by: by, ...defined({ reason }) };
  }
}
