import { hashText } from '../../objects/hashes.js';
import type { Entry } from '../../projection/entry.js';
import { withoutSecrets } from '../../redaction/secrets.js';
import { messageOf } from '../../values/thrown.js';
import { unlessAborted } from '../../values/unless-aborted.js';
import type { MemoryAdapter, MemoryChange } from './agent-memory.js';
import { type MemoryItem, memoryItem, memoryText } from './memory-item.js';
import type { SessionFacts } from './session-facts.js';

/** What is asked to be remembered of a text. */
export interface MemoryAsk {
  /** What a compaction leaves out, without secrets. */
  readonly text: string;
  readonly signal: AbortSignal;
}

/** Whoever says what of a text is to be remembered, mostly by asking a model: one thing (kind and fields of a memory item), or nothing by null. May fail. */
export type Remember = (ask: MemoryAsk) => Promise<unknown>;

/** How a flush is done. */
export interface FlushOptions {
  readonly memory: MemoryAdapter;
  readonly session: string;
  /** When it happens, milliseconds since 1970. */
  readonly at: number;
  /** Without one, constraints, decisions and findings of what is left out are remembered. */
  readonly remember?: Remember | undefined;
  /** Whether an item may be kept; what is marked as sensitive is not, if left out. */
  readonly mayKeep?: (item: MemoryItem) => boolean;
  /** The longest time that the flush takes, milliseconds; 2,500 if left out. */
  readonly timeoutMs?: number;
}

/** What became of a flush: one item was written; nothing new was to be kept; the same text was flushed before; it was not allowed; it failed. */
export interface Flushed {
  readonly outcome: 'written' | 'nothing' | 'known' | 'refused' | 'failed';
  /** SHA-256 of the session and the redacted text. */
  readonly hash: string;
  readonly item?: MemoryItem;
  readonly why?: string;
}

/** The tags of what a flush writes; the second names the text that it is of. */
const FLUSH_TAG = 'pre-compaction-flush';
const TIMEOUT_MS = 2_500;
const NOTHING: MemoryChange = { put: [], bury: [] };

const TITLES = {
  user_constraints: 'Constraints and preferences',
  decisions: 'Decided',
  discoveries: 'Found out',
} as const;

/** What is worth remembering without a model: what must hold, was decided or found out, and is not remembered yet. */
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
 * Remembers what a compaction is about to leave out, before it does: at most one item, once for a text (whichever process asks), without secrets on the way in and out, in a bounded time. Never throws: a
 * compaction goes on whatever becomes of it.
 */
export async function flushMemory(gone: readonly Entry[], facts: SessionFacts, options: FlushOptions): Promise<Flushed> {
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
    const draft = remember === undefined ? digestDraft(gone, facts, { items: held.items, session }) : await remember({ text, signal });
    if (draft === null || draft === undefined) return { outcome: 'nothing', hash };
    let flushed: Flushed = { outcome: 'known', hash };
    await memory.change(({ items, tags }) => {
      // What comes too late is not written behind the compaction.
      signal.throwIfAborted();
      flushed = { outcome: 'known', hash };
      if (tags.has(tag)) return NOTHING;
      const made = memoryItem(draft, { agent: memory.agent, session, at }, (id) => items.find((item) => item.memory_item_id === id));
      const item = { ...made, tags: [...new Set([...made.tags, FLUSH_TAG, tag])] };
      flushed = mayKeep(item)
        ? { outcome: 'written', hash, item }
        : { outcome: 'refused', hash, why: `an item that is ${item.sensitivity} is not kept by a flush` };
      return flushed.outcome === 'written' ? { put: [item], bury: [] } : NOTHING;
    }, at);
    return flushed;
  }
}
