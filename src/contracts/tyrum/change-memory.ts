import type { Burial, MemoryChange, RememberedItems } from './agent-memory.js';
import { consolidateMemory, type MemoryBudget } from './consolidate-memory.js';
import { type MemoryItem, type MemoryTombstone, memoryItem, type Remembering } from './memory-item.js';
import { TyrumError } from './tyrum-error.js';

/** A requested change of a memory. */
export interface MemoryWish {
  /**
   * Items to write, each with its kind and fields. An item replaces the stored item with its id. A
   * fact also replaces the stored fact with its key.
   */
  readonly put: readonly unknown[];
  readonly forget: readonly {
    readonly id: string;
    readonly by: MemoryTombstone['deleted_by'];
    readonly reason?: string;
  }[];
  /** The size limit for consolidation. If omitted, nothing is consolidated. */
  readonly budget?: MemoryBudget | undefined;
  readonly remembering: Remembering;
}

/**
 * Returns the change that a request makes: it writes items, then forgets items, then consolidates.
 * @throws {TyrumError} `invalid-memory`, with the item's position in the list
 * @throws {TyrumError} `unknown-memory` if an item to forget does not exist
 */
export function changedMemory(
  { items }: RememberedItems,
  { put, forget, budget, remembering }: MemoryWish,
): MemoryChange {
  const left = new Map(items.map((item) => [item.memory_item_id, item]));
  const changed = new Set<string>();
  for (const [i, draft] of put.entries()) {
    let item: MemoryItem;
    try {
      item = memoryItem(draft, remembering, (id) => left.get(id));
    } catch (error) {
      if (error instanceof TyrumError)
        throw new TyrumError(error.code, `item ${i + 1} of ${put.length}: ${error.message}`, { cause: error });
      throw error;
    }
    left.set(item.memory_item_id, item);
    changed.add(item.memory_item_id);
  }
  const bury: Burial[] = forget.map(({ id, ...how }) => {
    const item = left.get(id.toLowerCase());
    if (item === undefined)
      throw new TyrumError('unknown-memory', `agent ${remembering.agent} remembers no item ${JSON.stringify(id)}`);
    left.delete(item.memory_item_id);
    return { item, ...how };
  });
  if (budget !== undefined) {
    const consolidated = consolidateMemory([...left.values()], budget);
    for (const { item } of consolidated.bury) left.delete(item.memory_item_id);
    for (const item of consolidated.put) {
      left.set(item.memory_item_id, item);
      changed.add(item.memory_item_id);
    }
    bury.push(...consolidated.bury);
  }
  return { put: [...left.values()].filter(({ memory_item_id: id }) => changed.has(id)), bury };
}
