import type { ContextClient } from '../client/session/context-client.js';
import type { ContextSession } from '../client/session/context-session.js';
import { loadSession } from '../client/session/open-session.js';
import { DocumentError } from '../objects/errors.js';
import { type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import { SessionError } from '../session/errors.js';
import type { ChatMark } from '../session/session-fold.js';
import { StoreError } from '../store/errors.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';
import { type HistoryItem, historyOf } from './history-item.js';
import { chatEntries, isCompared, sentEntry } from './known-history.js';
import type { ReportedMessage } from './message-schema.js';
import { type HistoryEntry, reconcile } from './reconcile.js';

/** A harness's own names of its session. */
export interface LineageName {
  readonly id: string;
  /** The session that it was forked from, where the harness names it. */
  readonly parent?: string;
}

/** A history whose session is looked for. */
export interface LineageHistory {
  readonly messages: readonly ReportedMessage[];
  /** Whether the harness compacted it: what is missing was not undone. */
  readonly compacted?: boolean;
}

/** How a harness's history relates to the sessions of the database. */
type Lineage =
  /** It goes on in a session that is there. */
  | { readonly kind: 'continue'; readonly id: SessionId }
  /** It goes on from the middle or the end of another one. */
  | { readonly kind: 'fork'; readonly parent: SessionId; readonly at: number }
  | { readonly kind: 'new' };

/** Sessions that a history is compared with where none has its name. */
const MOST_CANDIDATES = 40;
/** Fewer entries than this in common are no evidence of a fork that nobody named. */
const LEAST_COMMON = 3;

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
  /** Whether it was sent under the name of the sessions that it is compared with: then its message ids are theirs. */
  readonly own: boolean;
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
function likeness(id: SessionId, marks: readonly ChatMark[], { entries, compacted, own }: Sent): Likeness {
  const used = new Set(entries.flatMap((entry) => (entry.kind === 'call' && entry.id !== undefined ? [entry.id] : [])));
  const chat = chatEntries(marks, () => undefined, used);
  const known = own ? chat : chat.map((entry) => ({ ...entry, inherited: true }));
  const { notice, matched } = reconcile(known, entries);
  const found = matched.filter((place) => place !== undefined);
  if (compacted) return { id, common: found.length, at: known[Math.max(-1, ...found)]?.seq ?? 0, missing: known.length - found.length };
  const common = notice?.kept ?? Math.min(known.length, entries.length);
  return { id, common, at: known[common - 1]?.seq ?? 0, missing: known.length - common };
}

/** A damaged session is like no history; opening it by name reports the damage. */
function damagedIsNone(error: unknown): undefined {
  if (error instanceof SessionError || error instanceof StoreError || error instanceof DocumentError) return undefined;
  throw error;
}

/** Sessions by their likeness to a history, the most like first. */
async function likenesses(snapshot: StoreSnapshot, ids: readonly SessionId[], sent: Sent): Promise<readonly Likeness[]> {
  const found = await Promise.all(
    ids.map(async (id) => {
      const held = await loadSession(snapshot, id).catch(damagedIsNone);
      return held === undefined ? [] : [likeness(id, held.state.marks, sent)];
    }),
  );
  return found.flat().sort((a, b) => b.common - a.common || a.missing - b.missing);
}

/** A branch has its session's name and a number: after an undo the harness goes on in it. */
const branchId = (base: string, number: number): SessionId => sessionId(`${base}.${number}`);

const isBranchOf = (id: string, base: string): boolean => id.startsWith(`${base}.`) && /^\d+$/.test(id.slice(base.length + 1));

/**
 * Finds the session that a harness's history belongs to (decisions F1, F2): the one of its own id or the branch of it that is most like the history;
 * else a fork of the parent that the harness names; else, where there is something to compare, a fork of whatever session begins like it.
 */
async function findLineage(client: ContextClient, { id: base, parent }: LineageName, history: LineageHistory): Promise<Lineage> {
  const { messages, compacted = false } = history;
  const own = sessionId(base);
  const snapshot = await client.store.latest();
  const exists = (await snapshot.heads([sessionObjectId(own)])).has(sessionObjectId(own));
  const items = historyOf(messages).items.filter(isCompared);
  const sent = { entries: items.map(sentEntry), compacted, own: exists };
  if (!exists && items.length < LEAST_COMMON && parent === undefined) return { kind: 'new' };
  const all = (await client.listSessions()).map(({ id }) => id);
  if (exists) {
    const branches = all.filter((id) => isBranchOf(id, base));
    if (branches.length === 0) return { kind: 'continue', id: own };
    const [best] = await likenesses(snapshot, [...branches, own], sent);
    return { kind: 'continue', id: best?.id ?? own };
  }
  const named = parent === undefined ? [] : all.filter((id) => id === parent || isBranchOf(id, parent));
  const [best] = await likenesses(snapshot, named.length > 0 ? named : all.slice(0, MOST_CANDIDATES), sent);
  if (best === undefined || best.common < (named.length > 0 ? 1 : leastShared(items))) return { kind: 'new' };
  return { kind: 'fork', parent: best.id, at: best.at };
}

async function forkAt(
  client: ContextClient,
  parent: SessionId,
  { id, at }: { readonly id: string; readonly at: number },
): Promise<ContextSession> {
  const session = await client.forkSession(parent, { id, at });
  await session.recordEvent({ kind: 'forked', kept: at, detail: parent });
  return session;
}

/** Opens a session that goes on. A fork whose process ended before it noted that it is one notes it now: its messages have other ids than its parent's. */
async function goOn(client: ContextClient, id: SessionId): Promise<ContextSession> {
  const session = await client.openSession({ id });
  const { parent } = (await (await client.store.latest()).heads([sessionObjectId(id)])).get(sessionObjectId(id))?.marks ?? {};
  if (parent !== undefined && session.state.seq === parent.seq)
    await session.recordEvent({ kind: 'forked', kept: parent.seq, detail: parent.session });
  return session;
}

/** Opens the session that a harness's history belongs to: an existing one, a fork, or a new one under the harness's name. */
export async function openLineage(client: ContextClient, name: LineageName, history: LineageHistory): Promise<ContextSession> {
  const lineage = await findLineage(client, name, history);
  if (lineage.kind === 'fork') return forkAt(client, lineage.parent, { id: name.id, at: lineage.at });
  return lineage.kind === 'continue' ? goOn(client, lineage.id) : client.openSession({ id: name.id });
}

/** Forks a session at the last step that it shares with a history that undid something, as the next branch of `base`. What was undone stays in the session. */
export async function openBranch(
  client: ContextClient,
  base: string,
  from: { readonly id: SessionId; readonly at: number },
): Promise<ContextSession> {
  const names = new Set((await client.listSessions()).map(({ id }) => String(id)));
  let number = 2;
  while (names.has(branchId(base, number))) number += 1;
  return forkAt(client, from.id, { id: branchId(base, number), at: from.at });
}
