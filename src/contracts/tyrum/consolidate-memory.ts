import type { Burial, MemoryChange } from './agent-memory.js';
import { type MemoryItem, memoryText, writtenAt } from './memory-item.js';

/** The size limit of an agent's memory. */
export interface MemoryBudget {
  readonly items: number;
  /** Total characters of the items' texts. */
  readonly chars: number;
}

/** The tag of items that a budget never removes. */
export const CANONICAL = 'canonical';

/** Number of characters to which texts are shortened before any item is removed. */
const COMPRESSED = 600;
/** The order in which kinds are removed, lowest first. */
const WORTH = { episode: 0, note: 1, procedure: 2, fact: 3 } as const satisfies Record<MemoryItem['kind'], number>;

const normal = (text: string): string => text.toLowerCase().replace(/\s+/gu, ' ').trim();
const sameAs = (item: MemoryItem): string =>
  `${item.kind} ${item.kind === 'fact' ? item.key : normal(memoryText(item))}`;
const confidenceOf = (item: MemoryItem): number => ('confidence' in item ? (item.confidence ?? 1) : 1);

const union = (...lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())];
const SENSITIVITIES = ['public', 'private', 'sensitive'] as const;
type Sensitivity = (typeof SENSITIVITIES)[number];
const mostSensitive = (a: Sensitivity, b: Sensitivity): Sensitivity =>
  SENSITIVITIES.indexOf(a) > SENSITIVITIES.indexOf(b) ? a : b;

/**
 * Merges an older item into a newer one that has the same text or fact key. The result keeps the
 * tags and sources of both.
 */
function merged(kept: MemoryItem, older: MemoryItem): MemoryItem {
  return {
    ...kept,
    tags: union(kept.tags, older.tags),
    sensitivity: mostSensitive(kept.sensitivity, older.sensitivity),
    provenance: { ...kept.provenance, refs: union(kept.provenance.refs, older.provenance.refs) },
  };
}

function newerFirst(a: MemoryItem, b: MemoryItem): number {
  const [seenA, seenB] = [a, b].map((item) => (item.kind === 'fact' ? Date.parse(item.observed_at) : 0)) as [
    number,
    number,
  ];
  return seenB - seenA || writtenAt(b) - writtenAt(a) || (a.memory_item_id < b.memory_item_id ? -1 : 1);
}

function shortened(text: string): string {
  const cut = text.slice(0, COMPRESSED).replace(/[\ud800-\udbff]$/, '');
  return `${cut}\n[... ${text.length - cut.length} characters left out ...]`;
}

/** Shortens the text of an item. Facts and short texts stay unchanged. */
function compressed(item: MemoryItem): MemoryItem {
  if (item.kind === 'fact') return item;
  const field = item.kind === 'episode' ? 'summary_md' : 'body_md';
  const text = item.kind === 'episode' ? item.summary_md : item.body_md;
  const short = shortened(text);
  return short.length < text.length ? { ...item, [field]: short } : item;
}

const isSame = (a: MemoryItem, b: MemoryItem): boolean => JSON.stringify(a) === JSON.stringify(b);

/**
 * Plans how to deduplicate a memory and fit it into its budget. Items with the same text are merged
 * into the newest one. Of several facts with one key, the newest stays. If the budget is still
 * exceeded, long texts are shortened, oldest first. Then items are removed: episodes, notes,
 * procedures, facts, the least certain and oldest first. Items tagged `canonical` are neither
 * shortened nor removed.
 *
 * Pure and idempotent: equal input gives an equal change, and a consolidated memory stays
 * unchanged.
 */
export function consolidateMemory(items: readonly MemoryItem[], budget: MemoryBudget): MemoryChange {
  const bury: Burial[] = [];
  const left = new Map<string, MemoryItem>();
  for (const item of items.toSorted(newerFirst)) {
    const kept = left.get(sameAs(item));
    left.set(sameAs(item), kept === undefined ? item : merged(kept, item));
    if (kept !== undefined) bury.push({ item, by: 'consolidation', reason: `replaced by ${kept.memory_item_id}` });
  }
  const kept = new Map([...left.values()].map((item) => [item.memory_item_id, item]));
  const chars = (): number => [...kept.values()].reduce((sum, item) => sum + memoryText(item).length, 0);
  const worst = [...kept.values()]
    .filter(({ tags }) => !tags.includes(CANONICAL))
    .sort((a, b) => WORTH[a.kind] - WORTH[b.kind] || confidenceOf(a) - confidenceOf(b) || newerFirst(b, a));
  let size = chars();
  for (const item of worst.toSorted((a, b) => writtenAt(a) - writtenAt(b))) {
    if (size <= budget.chars) break;
    const short = compressed(item);
    size += memoryText(short).length - memoryText(item).length;
    kept.set(item.memory_item_id, short);
  }
  for (const { memory_item_id: id } of worst) {
    if (kept.size <= budget.items && size <= budget.chars) break;
    const item = kept.get(id) as MemoryItem;
    kept.delete(id);
    size -= memoryText(item).length;
    bury.push({ item, by: 'budget', reason: `exceeds ${budget.items} items or ${budget.chars} characters` });
  }
  const before = new Map(items.map((item) => [item.memory_item_id, item]));
  return { put: [...kept.values()].filter((item) => !isSame(item, before.get(item.memory_item_id) ?? item)), bury };
}
