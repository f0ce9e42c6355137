import { hashText } from '../../objects/hashes.js';
import { withoutSecrets } from '../../redaction/secrets.js';
import { unlessAborted } from '../../values/promises.js';
import { messageOf } from '../../values/thrown.js';
import type { Entry } from '../projection/entry.js';
import type { MemoryAdapter, MemoryChange } from './agent-memory.js';
import { type MemoryItem, memoryItem, memoryText } from './memory-item.js';
import type { SessionFacts } from './session-facts.js';

/** A request to extract an item of memory from a text. */
export interface MemoryAsk {
  /** The text that a compaction removes, without secrets. */
  readonly text: string;
  readonly signal: AbortSignal;
}

/**
 * Extracts an item of memory from a text, usually by asking a model. Returns the kind and fields of
 * the item, or null for none. May fail.
 */
export type Remember = (ask: MemoryAsk) => Promise<unknown>;

/** Options of a flush. */
export interface FlushOptions {
  readonly memory: MemoryAdapter;
  readonly session: string;
  /** The time of the flush in milliseconds since 1970. */
  readonly at: number;
  /** Default: the constraints, decisions and findings of the removed text. */
  readonly remember?: Remember | undefined;
  /** Returns true if an item may be stored. The default rejects items marked as sensitive. */
  readonly mayKeep?: (item: MemoryItem) => boolean;
  /** Time limit of the flush in milliseconds; 2,500 if omitted. */
  readonly timeoutMs?: number;
}

/**
 * The outcome of a flush. `nothing`: nothing was new. `known`: the text had been flushed before.
 * `refused`: the item was not allowed.
 */
export interface Flushed {
  readonly outcome: 'written' | 'nothing' | 'known' | 'refused' | 'failed';
  /** SHA-256 of the session and of the text without secrets. */
  readonly hash: string;
  readonly item?: MemoryItem;
  readonly why?: string;
}

/** The first tag of flushed items. The second tag is derived from the source text. */
const FLUSH_TAG = 'pre-compaction-flush';
const TIMEOUT_MS = 2_500;
const NOTHING: MemoryChange = { put: [], bury: [] };

const TITLES = {
  user_constraints: 'Constraints and preferences',
  decisions: 'Decided',
  discoveries: 'Found out',
} as const;

/** Drafts an item without a model: requirements, decisions and findings that the memory lacks. */
function digestDraft(
  entries: readonly Entry[],
  facts: SessionFacts,
  { items, session }: { readonly items: readonly MemoryItem[]; readonly session: string },
): unknown {
  const known = items.map(memoryText).join('\n');
  const found = facts.of(entries, withoutSecrets);
  const parts = (Object.keys(TITLES) as (keyof typeof TITLES)[]).flatMap((list) => {
    const fresh = [...new Set(found[list])].filter((text) => !known.includes(text));
    return fresh.length === 0 ? [] : [`${TITLES[list]}:`, ...fresh.map((text) => `- ${text}`)];
  });
  if (parts.length === 0) return null;
  const [first, last] = [entries[0]?.turn ?? 0, entries.at(-1)?.turn ?? 0];
  const provenance = { source_kind: 'system', conversation_id: session, refs: [`${session}@turn:${last}`] };
  return { kind: 'note', title: `From turns ${first} to ${last} of ${session}`, body_md: parts.join('\n'), provenance };
}

const said = (entry: Entry): string => `${entry.kind}: ${entry.text ?? ''}`;

/**
 * Stores one item of memory from the text that a compaction is about to remove. Each text is
 * flushed once, even if several processes try. Secrets are removed from input and output, and the
 * time is limited. Never throws, so the compaction always proceeds.
 */
export async function flushMemory(
  gone: readonly Entry[],
  facts: SessionFacts,
  options: FlushOptions,
): Promise<Flushed> {
  const { memory, session, at, remember, mayKeep = ({ sensitivity }) => sensitivity !== 'sensitive' } = options;
  const text = gone.map((entry) => withoutSecrets(said(entry))).join('\n');
  const hash = hashText(`${session}\n${text}`);
  if (gone.length === 0) return { outcome: 'nothing', hash };
  const tag = `preflush:${hash}`;
  const signal = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
  try {
    return await unlessAborted(flush(), signal);
  } catch (error) {
    return { outcome: 'failed', hash, why: withoutSecrets(messageOf(error)) };
  }

  async function flush(): Promise<Flushed> {
    const held = await memory.read();
    if (held.tags.has(tag)) return { outcome: 'known', hash };
    const draft =
      remember === undefined
        ? digestDraft(gone, facts, { items: held.items, session })
        : await remember({ text, signal });
    if (draft === null || draft === undefined) return { outcome: 'nothing', hash };
    let flushed: Flushed = { outcome: 'known', hash };
    await memory.change(({ items, tags }) => {
      // After the timeout the compaction has continued, so a late result must not be written.
      signal.throwIfAborted();
      flushed = { outcome: 'known', hash };
      if (tags.has(tag)) return NOTHING;
      const made = memoryItem(draft, { agent: memory.agent, session, at }, (id) =>
        items.find((item) => item.memory_item_id === id),
      );
      const item = { ...made, tags: [...new Set([...made.tags, FLUSH_TAG, tag])] };
      flushed = mayKeep(item)
        ? { outcome: 'written', hash, item }
        : { outcome: 'refused', hash, why: `a flush does not keep an item marked as ${item.sensitivity}` };
      return flushed.outcome === 'written' ? { put: [item], bury: [] } : NOTHING;
    }, at);
    return flushed;
  }
}
