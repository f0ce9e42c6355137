import type { Burial, MemoryChange } from './agent-memory.js';
import { type MemoryItem, memoryText, writtenAt } from './memory-item.js';

/** How much an agent may remember. */
export interface MemoryBudget {
  readonly items: number;
  /** Characters of what the items say. */
  readonly chars: number;
}

/** What is never let go for a budget. */
export const CANONICAL = 'canonical';

/** What a text is shortened to before anything is let go. */
const COMPRESSED = 600;
/** What is let go first. */
const WORTH = { episode: 0, note: 1, procedure: 2, fact: 3 } as const satisfies Record<MemoryItem['kind'], number>;

const normal = (text: string): string => text.toLowerCase().replace(/\s+/gu, ' ').trim();
const sameAs = (item: MemoryItem): string => `${item.kind} ${item.kind === 'fact' ? item.key : normal(memoryText(item))}`;
const confidenceOf = (item: MemoryItem): number => ('confidence' in item ? (item.confidence ?? 1) : 1);

const union = (...lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())];
const SENSITIVITIES = ['public', 'private', 'sensitive'] as const;
type Sensitivity = (typeof SENSITIVITIES)[number];
const mostSensitive = (a: Sensitivity, b: Sensitivity): Sensitivity => (SENSITIVITIES.indexOf(a) > SENSITIVITIES.indexOf(b) ? a : b);

/** The newer of two that say the same, or that are facts of one key, with what the older one is found and proved by. */
function merged(kept: MemoryItem, older: MemoryItem): MemoryItem {
  return {
    ...kept,
    tags: union(kept.tags, older.tags),
    sensitivity: mostSensitive(kept.sensitivity, older.sensitivity),
    provenance: { ...kept.provenance, refs: union(kept.provenance.refs, older.provenance.refs) },
  };
}

function newerFirst(a: MemoryItem, b: MemoryItem): number {
  const [seenA, seenB] = [a, b].map((item) => (item.kind === 'fact' ? Date.parse(item.observed_at) : 0)) as [number, number];
  return seenB - seenA || writtenAt(b) - writtenAt(a) || (a.memory_item_id < b.memory_item_id ? -1 : 1);
}

function shortened(text: string): string {
  const cut = text.slice(0, COMPRESSED).replace(/[\ud800-\udbff]$/, '');
  return `${cut}\n[... ${text.length - cut.length} characters left out ...]`;
}

/** An item with a shorter text; itself where that is short, and of facts. */
function compressed(item: MemoryItem): MemoryItem {
  if (item.kind === 'fact') return item;
  const field = item.kind === 'episode' ? 'summary_md' : 'body_md';
  const text = item.kind === 'episode' ? item.summary_md : item.body_md;
  const short = shortened(text);
  return short.length < text.length ? { ...item, [field]: short } : item;
}

const isSame = (a: MemoryItem, b: MemoryItem): boolean => JSON.stringify(a) === JSON.stringify(b);

/**
 * What becomes different in a memory so that it says everything once and keeps within its budget: what says the same is merged into the newest, of facts of one key the newest stands; then, only
 * where the budget is passed, long texts get shorter, the oldest first, and last items are let go: episodes, notes, procedures, facts, of each the least certain and oldest. What is tagged `canonical` is neither
 * shortened nor let go. A pure function: the same items and budget give the same change, and a memory that was consolidated needs none.
 */
export function consolidateMemory(items: readonly MemoryItem[], budget: MemoryBudget): MemoryChange {
  const bury: Burial[] = [];
  const left = new Map<string, MemoryItem>();
  for (const item of items.toSorted(newerFirst)) {
    const kept = left.get(sameAs(item));
    left.set(sameAs(item), kept === undefined ? item : merged(kept, item));
    if (kept !== undefined) bury.push({ item, by: 'consolidation', reason: `${kept.memory_item_id} stands for it` });
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
    bury.push({ item, by: 'budget', reason: `at most ${budget.items} items with ${budget.chars} characters` });
  }
  const before = new Map(items.map((item) => [item.memory_item_id, item]));
  return { put: [...kept.values()].filter((item) => !isSame(item, before.get(item.memory_item_id) ?? item)), bury };
}
