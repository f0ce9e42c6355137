import { MASK } from '../../redaction/mark.js';
import { withoutSecrets } from '../../redaction/secrets.js';
import { CANONICAL } from './consolidate-memory.js';
import { type MemoryItem, memoryText, writtenAt } from './memory-item.js';

/** What is to be recalled. */
export interface RecallWish {
  /** Words that the items are looked for by; without any the most telling items are recalled, as at the beginning of a session. */
  readonly query?: string;
  /** The most items; 8 if left out. */
  readonly limit?: number;
  /** The most characters of the text; 4,000 if left out. */
  readonly chars?: number;
  /** Whether items that are marked as sensitive are recalled too; not if left out. */
  readonly sensitive?: boolean;
}

/** What was recalled, and as the call that it enters a context by. */
export interface Recalled {
  readonly tool: 'memory.search' | 'memory.seed';
  readonly items: readonly MemoryItem[];
  readonly text: string;
}

const LIMIT = 8;
const CHARS = 4_000;
const LONGEST_LINE = 1_000;

const WORD = /[\p{L}\p{N}_./-]+/gu;
const wordsOf = (text: string): ReadonlySet<string> => new Set((text.toLowerCase().match(WORD) ?? []).filter((word) => word.length > 1));

/** What items are worth at the beginning of a session. */
const WORTH = { fact: 3, procedure: 2, note: 1, episode: 0 } as const satisfies Record<MemoryItem['kind'], number>;

function nameOf(item: MemoryItem): string {
  if (item.kind === 'fact') return item.key;
  return item.kind === 'episode' ? '' : (item.title ?? '');
}

/** How well an item answers some words; 0 where it has none of them. */
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
 * What an agent remembers of something, within limits: the items that have most of the query's words, in their names above all, of equals the one that was written last; without a query what was
 * tagged `canonical`, then facts, procedures, notes and episodes, the newest first. Secrets are masked. A pure function.
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
    .sort((a, b) => b.worth - a.worth || writtenAt(b.item) - writtenAt(a.item) || (a.item.memory_item_id < b.item.memory_item_id ? -1 : 1));
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
