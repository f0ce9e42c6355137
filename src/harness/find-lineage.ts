import type { ContextClient } from '../client/session/context-client.js';
import { loadSession } from '../client/session/open-session.js';
import { DocumentError } from '../objects/errors.js';
import { type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import { SessionError } from '../session/errors.js';
import type { ChatMark } from '../session/session-fold.js';
import { StoreError } from '../store/errors.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import { type HistoryItem, historyOf } from './history-item.js';
import { chatEntries, isBareCarrier, sentEntry } from './known-history.js';
import type { ReportedMessage } from './message-schema.js';
import { type HistoryEntry, reconcile } from './reconcile.js';

/** How a harness's history relates to the sessions of the database. */
export type Lineage =
  /** It goes on in a session that is there. */
  | { readonly kind: 'continue'; readonly id: SessionId }
  /** It goes on from the middle or the end of another one. */
  | { readonly kind: 'fork'; readonly parent: SessionId; readonly at: number }
  | { readonly kind: 'new' };

/** Sessions that are looked at where a history is nobody's by name. */
const MOST_CANDIDATES = 40;
/** Fewer entries than this in common are no evidence of a fork that nobody named. */
const LEAST_COMMON = 3;

const speaks = (item: HistoryItem): boolean => item.kind === 'call' || !isBareCarrier(item);

/** How many entries a fork that nobody named must share: everything before the message of the user with which it begins. */
function leastShared(items: readonly HistoryItem[]): number {
  const last = items.at(-1);
  return last?.kind === 'message' && last.role === 'user' ? Math.max(LEAST_COMMON, items.length - 1) : Number.POSITIVE_INFINITY;
}

/** A history as it is compared with sessions. */
interface Sent {
  readonly entries: readonly HistoryEntry[];
  /** Its beginning is a summary: what it has in common with a session may stand anywhere in it. */
  readonly compacted: boolean;
}

interface Likeness {
  readonly id: SessionId;
  /** Entries in common: from the beginning on, or anywhere where the beginning was compacted. */
  readonly common: number;
  /** The step of the last of them. */
  readonly at: number;
  /** Known entries that the history does not have. */
  readonly missing: number;
}

/** How far a history goes along with a chat; under another session's name message ids are new, only words and call ids count. */
function likeness(id: SessionId, marks: readonly ChatMark[], { entries, compacted }: Sent, own: boolean): Likeness {
  const used = new Set(entries.flatMap((entry) => (entry.kind === 'call' && entry.id !== undefined ? [entry.id] : [])));
  const chat = chatEntries(marks, () => undefined, used);
  const known = own ? chat : chat.map((entry) => ({ ...entry, inherited: true }));
  const { notice, matched } = reconcile(known, entries);
  const found = matched.filter((place) => place !== undefined);
  if (compacted) return { id, common: found.length, at: known[Math.max(-1, ...found)]?.seq ?? 0, missing: known.length - found.length };
  const common = notice?.kept ?? Math.min(known.length, entries.length);
  return { id, common, at: known[common - 1]?.seq ?? 0, missing: known.length - common };
}

/** A session that is damaged is like nothing; who asks for it by name is told. */
function damagedIsNone(error: unknown): undefined {
  if (error instanceof SessionError || error instanceof StoreError || error instanceof DocumentError) return undefined;
  throw error;
}

async function likenesses(snapshot: StoreSnapshot, ids: readonly SessionId[], sent: Sent, own: boolean): Promise<readonly Likeness[]> {
  const found = await Promise.all(
    ids.map(async (id) => {
      const held = await loadSession(snapshot, id).catch(damagedIsNone);
      return held === undefined ? [] : [likeness(id, held.state.marks, sent, own)];
    }),
  );
  return found.flat().sort((a, b) => b.common - a.common || a.missing - b.missing);
}

/** The names of a session's branches: what a harness undid within it goes on under the session's name and a number. */
export const branchId = (base: string, number: number): SessionId => sessionId(`${base}.${number}`);

const isBranchOf = (id: string, base: string): boolean => id.startsWith(`${base}.`) && /^\d+$/.test(id.slice(base.length + 1));

/**
 * Finds the session that a harness's history belongs to (decisions F1, F2): the one of its own id or the branch of it that is most like the history;
 * else a fork of the parent that the harness names; else, where there is something to compare, a fork of whatever session begins like it.
 */
export async function findLineage(
  client: ContextClient,
  base: string,
  { messages, compacted = false }: { readonly messages: readonly ReportedMessage[]; readonly compacted?: boolean },
  parent: string | undefined,
): Promise<Lineage> {
  const own = sessionId(base);
  const snapshot = await client.store.latest();
  const exists = (await snapshot.heads([sessionObjectId(own)])).has(sessionObjectId(own));
  const items = historyOf(messages).items.filter(speaks);
  const sent = { entries: items.map(sentEntry), compacted };
  if (!exists && items.length < LEAST_COMMON && parent === undefined) return { kind: 'new' };
  const all = (await client.listSessions()).map(({ id }) => id);
  if (exists) {
    const branches = all.filter((id) => isBranchOf(id, base));
    if (branches.length === 0) return { kind: 'continue', id: own };
    const [best] = await likenesses(snapshot, [...branches, own], sent, true);
    return { kind: 'continue', id: best?.id ?? own };
  }
  const named = parent === undefined ? [] : all.filter((id) => id === parent || isBranchOf(id, parent));
  const [best] = await likenesses(snapshot, named.length > 0 ? named : all.slice(0, MOST_CANDIDATES), sent, false);
  if (best === undefined || best.common < (named.length > 0 ? 1 : leastShared(items))) return { kind: 'new' };
  return { kind: 'fork', parent: best.id, at: best.at };
}
