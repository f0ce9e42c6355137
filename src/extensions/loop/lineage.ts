import type { ContextClient } from '../../client/session/context-client.js';
import type { ContextSession } from '../../client/session/context-session.js';
import { loadSession } from '../../client/session/open-session.js';
import { type HistoryItem, historyOf } from '../../harness/history-item.js';
import { chatEntries, isCompared, sentEntry } from '../../harness/known-history.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import { type HistoryEntry, reconcile } from '../../harness/reconcile.js';
import { DocumentError } from '../../objects/errors.js';
import { type SessionId, sessionId, sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { ChatMark } from '../../session/session-fold.js';
import { StoreError } from '../../store/errors.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';

/** The names that a harness gives its session and the session's parent. */
export interface LineageName {
  readonly id: string;
  /** Returns whether to take the session over from the process that owns it. Default: never. */
  readonly takesOver?: (session: SessionId) => Promise<boolean>;
  /** The session's parent, if the harness names it. */
  readonly parent?: string;
}

/** A history whose session has not been found yet. */
export interface LineageHistory {
  readonly messages: readonly ReportedMessage[];
  /** Whether the harness compacted the history. If so, missing entries do not count as undone. */
  readonly compacted?: boolean;
}

/** How a history relates to the stored sessions. */
type Lineage =
  /** It continues an existing session. */
  | { readonly kind: 'continue'; readonly id: SessionId }
  /** It forks another session at one of that session's steps. */
  | { readonly kind: 'fork'; readonly parent: SessionId; readonly at: number }
  | { readonly kind: 'new' };

/** Maximum number of sessions to compare with a history if no session has its name. */
const MOST_CANDIDATES = 40;
/** Minimum number of common entries that show an unnamed fork. */
const LEAST_COMMON = 3;

/**
 * Returns the minimum number of entries that an unnamed fork shares with its parent: all before its
 * own first user message.
 */
function leastShared(items: readonly HistoryItem[]): number {
  const last = items.at(-1);
  return last?.kind === 'message' && last.role === 'user'
    ? Math.max(LEAST_COMMON, items.length - 1)
    : Number.POSITIVE_INFINITY;
}

/** A harness's history in a form that can be compared with stored sessions. */
interface Sent {
  readonly entries: readonly HistoryEntry[];
  /** Whether the history begins with a summary. Then common entries may be anywhere in it. */
  readonly compacted: boolean;
  /**
   * Whether the history and the compared sessions have the same name, and so the same message ids.
   */
  readonly own: boolean;
}

interface Likeness {
  readonly id: SessionId;
  /** Number of common entries: from the beginning, or anywhere if the history was compacted. */
  readonly common: number;
  /** The step of the last common entry. */
  readonly at: number;
  /** Number of stored entries that the history lacks. */
  readonly missing: number;
}

/**
 * Returns how much a history resembles a stored chat. In a session of another name, message ids
 * differ, so only texts and call ids are compared.
 */
function likeness(id: SessionId, marks: readonly ChatMark[], { entries, compacted, own }: Sent): Likeness {
  const used = new Set(entries.flatMap((entry) => (entry.kind === 'call' && entry.id !== undefined ? [entry.id] : [])));
  const chat = chatEntries(marks, () => undefined, used);
  const known = own ? chat : chat.map((entry) => ({ ...entry, inherited: true }));
  const { notice, matched } = reconcile(known, entries);
  const found = matched.filter((place) => place !== undefined);
  if (compacted)
    return {
      id,
      common: found.length,
      at: known[Math.max(-1, ...found)]?.seq ?? 0,
      missing: known.length - found.length,
    };
  const common = notice?.kept ?? Math.min(known.length, entries.length);
  return { id, common, at: known[common - 1]?.seq ?? 0, missing: known.length - common };
}

/** Makes a damaged session match no history. Opening it by its name reports the damage. */
function damagedIsNone(error: unknown): undefined {
  if (error instanceof SessionError || error instanceof StoreError || error instanceof DocumentError) return undefined;
  throw error;
}

/** Compares sessions with a history. Returns the results, the best match first. */
async function likenesses(
  snapshot: StoreSnapshot,
  ids: readonly SessionId[],
  sent: Sent,
): Promise<readonly Likeness[]> {
  const found = await Promise.all(
    ids.map(async (id) => {
      const held = await loadSession(snapshot, id).catch(damagedIsNone);
      return held === undefined ? [] : [likeness(id, held.state.marks, sent)];
    }),
  );
  return found.flat().sort((a, b) => b.common - a.common || a.missing - b.missing);
}

/**
 * Returns the name of a branch: its session's name and a number. After an undo, the harness
 * continues in a branch.
 */
const branchId = (base: string, number: number): SessionId => sessionId(`${base}.${number}`);

const isBranchOf = (id: string, base: string): boolean =>
  id.startsWith(`${base}.`) && /^\d+$/.test(id.slice(base.length + 1));

/**
 * Finds the session of a harness's history (decisions F1, F2). If a session has its name, it
 * continues that session or the most similar branch. Otherwise it forks the named parent. Without a
 * named parent, it forks a session that begins alike, if there are enough entries to compare.
 */
async function findLineage(
  client: ContextClient,
  { id: base, parent }: LineageName,
  history: LineageHistory,
): Promise<Lineage> {
  const { messages, compacted = false } = history;
  const own = sessionId(base);
  const snapshot = await client.store.latest();
  const exists = (await snapshot.heads([sessionObjectId(own)])).has(sessionObjectId(own));
  const items = historyOf(messages).items.filter(isCompared);
  const sent = { entries: items.map((item) => sentEntry(item, client.mask)), compacted, own: exists };
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

/**
 * Opens a session to continue it. If a process died after it made a fork, the fork is recorded now.
 * The fork's messages have other ids than its parent's, so a record is needed.
 */
async function goOn(client: ContextClient, id: SessionId, takeOver: boolean): Promise<ContextSession> {
  const session = await client.openSession({ id, takeOver });
  const { parent } =
    (await (await client.store.latest()).heads([sessionObjectId(id)])).get(sessionObjectId(id))?.marks ?? {};
  if (parent !== undefined && session.state.seq === parent.seq)
    await session.recordEvent({ kind: 'forked', kept: parent.seq, detail: parent.session });
  return session;
}

/**
 * Opens the session for a harness's history: an existing session, a fork, or a new session with the
 * harness's name.
 */
export async function openLineage(
  client: ContextClient,
  name: LineageName,
  history: LineageHistory,
): Promise<ContextSession> {
  const lineage = await findLineage(client, name, history);
  if (lineage.kind === 'fork') return forkAt(client, lineage.parent, { id: name.id, at: lineage.at });
  const takeOver = (await name.takesOver?.(lineage.kind === 'continue' ? lineage.id : sessionId(name.id))) === true;
  if (lineage.kind === 'continue') return goOn(client, lineage.id, takeOver);
  return client.openSession({ id: name.id, takeOver });
}

/**
 * Forks a session as the next branch of `base`, because the harness undid entries. The fork begins
 * after the last step that the history still has. The undone entries stay in the old session.
 */
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
