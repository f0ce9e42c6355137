import { MASK } from '../../redaction/mark.js';
import { withoutSecrets } from '../../redaction/secrets.js';
import { CANONICAL } from './consolidate-memory.js';
import { type MemoryItem, memoryText, writtenAt } from './memory-item.js';

/** A recall request. */
export interface RecallWish {
  /**
   * Words to search for. Without words, recalls the most important items, as at the start of a
   * session.
   */
  readonly query?: string;
  /** Maximum number of items; 8 if omitted. */
  readonly limit?: number;
  /** Maximum characters of the text; 4,000 if omitted. */
  readonly chars?: number;
  /** Whether items marked as sensitive are recalled; false if omitted. */
  readonly sensitive?: boolean;
}

/** The recalled items, and the call by which they enter a context. */
export interface Recalled {
  readonly tool: 'memory.search' | 'memory.seed';
  readonly items: readonly MemoryItem[];
  readonly text: string;
}

const LIMIT = 8;
const CHARS = 4_000;
const LONGEST_LINE = 1_000;

const WORD = /[\p{L}\p{N}_./-]+/gu;
const wordsOf = (text: string): ReadonlySet<string> =>
  new Set((text.toLowerCase().match(WORD) ?? []).filter((word) => word.length > 1));

/** Priorities of the kinds when no words are given. */
const WORTH = { fact: 3, procedure: 2, note: 1, episode: 0 } as const satisfies Record<MemoryItem['kind'], number>;

function nameOf(item: MemoryItem): string {
  if (item.kind === 'fact') return item.key;
  return item.kind === 'episode' ? '' : (item.title ?? '');
}

/** Scores how well an item matches the words. 0 if it contains no word. */
function score(item: MemoryItem, words: ReadonlySet<string>): number {
  const [name, tags, text] = [nameOf(item), item.tags.join(' '), memoryText(item)].map(wordsOf) as [
    ReadonlySet<string>,
    ReadonlySet<string>,
    ReadonlySet<string>,
  ];
  let sum = 0;
  for (const word of words) sum += (name.has(word) ? 3 : 0) + (tags.has(word) ? 2 : 0) + (text.has(word) ? 1 : 0);
  return sum;
}

function line(item: MemoryItem): string {
  const text = withoutSecrets(memoryText(item)).replace(/\s+/gu, ' ').trim();
  const cut = text.length <= LONGEST_LINE ? text : `${text.slice(0, LONGEST_LINE).replace(/[\ud800-\udbff]$/, '')} …`;
  return `- ${item.kind} ${item.memory_item_id} (${new Date(writtenAt(item)).toISOString()}): ${cut || MASK}`;
}

/**
 * Recalls items of a memory within limits. With a query, items that contain most of its words come
 * first. Words in names count most. Items with equal scores are ordered by write time, newest
 * first. Without a query, `canonical` items come first, then facts, procedures, notes and episodes,
 * newest first. Secrets are masked. Pure.
 */
export function recallMemory(items: readonly MemoryItem[], wish: RecallWish): Recalled {
  const { query, limit = LIMIT, chars = CHARS, sensitive = false } = wish;
  const words = wordsOf(query ?? '');
  const worth = (item: MemoryItem): number =>
    query === undefined ? 1 + WORTH[item.kind] + (item.tags.includes(CANONICAL) ? 4 : 0) : score(item, words);
  const ranked = items
    .filter((item) => sensitive || item.sensitivity !== 'sensitive')
    .map((item) => ({ item, worth: worth(item) }))
    .filter((one) => one.worth > 0)
    .sort(
      (a, b) =>
        b.worth - a.worth ||
        writtenAt(b.item) - writtenAt(a.item) ||
        (a.item.memory_item_id < b.item.memory_item_id ? -1 : 1),
    );
  const found: MemoryItem[] = [];
  const lines: string[] = [];
  let room = chars;
  for (const { item } of ranked) {
    if (found.length === limit) break;
    const text = line(item);
    if (text.length + 1 > room) continue;
    room -= text.length + 1;
    found.push(item);
    lines.push(text);
  }
  const tool = query === undefined ? 'memory.seed' : 'memory.search';
  return { tool, items: found, text: found.length === 0 ? 'nothing is remembered of it' : lines.join('\n') };
}
