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

/** A harness's names for its session. */
export interface LineageName {
  readonly id: string;
  /** Returns whether to take the session over from the process that has it. Default: never. */
  readonly takesOver?: (session: SessionId) => Promise<boolean>;
  /** The session's parent, if the harness names it. */
  readonly parent?: string;
}

/** A history whose session is unknown. */
export interface LineageHistory {
  readonly messages: readonly ReportedMessage[];
  /** Whether the harness compacted the history. Then missing entries were not undone. */
  readonly compacted?: boolean;
}

/** How a harness's history relates to the stored sessions. */
type Lineage =
  /** It continues an existing session. */
  | { readonly kind: 'continue'; readonly id: SessionId }
  /** It continues from the middle or the end of another session. */
  | { readonly kind: 'fork'; readonly parent: SessionId; readonly at: number }
  | { readonly kind: 'new' };

/** Maximum number of sessions compared with a history if none has its name. */
const MOST_CANDIDATES = 40;
/** Minimum number of common entries that indicate an unnamed fork. */
const LEAST_COMMON = 3;

/**
 * Returns how many entries an unnamed fork must share: all before the user message that begins it.
 */
function leastShared(items: readonly HistoryItem[]): number {
  const last = items.at(-1);
  return last?.kind === 'message' && last.role === 'user'
    ? Math.max(LEAST_COMMON, items.length - 1)
    : Number.POSITIVE_INFINITY;
}

/** A history in comparable form. */
interface Sent {
  readonly entries: readonly HistoryEntry[];
  /** Whether its beginning is a summary. Then common entries may be anywhere in it. */
  readonly compacted: boolean;
  /**
   * Whether it was sent under the name of the compared sessions. Then its message ids are theirs.
   */
  readonly own: boolean;
}

interface Likeness {
  readonly id: SessionId;
  /** Number of common entries from the beginning, or anywhere if the beginning was compacted. */
  readonly common: number;
  /** The step of the last common entry. */
  readonly at: number;
  /** Number of known entries that the history lacks. */
  readonly missing: number;
}

/**
 * Returns how far a history matches a chat. Under another session's name, message ids differ. Then
 * only texts and call ids count.
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

/** A damaged session matches no history. Opening it by name reports the damage. */
function damagedIsNone(error: unknown): undefined {
  if (error instanceof SessionError || error instanceof StoreError || error instanceof DocumentError) return undefined;
  throw error;
}

/** Returns sessions by their likeness to a history, best first. */
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

/** A branch has its session's name and a number. After an undo the harness continues in it. */
const branchId = (base: string, number: number): SessionId => sessionId(`${base}.${number}`);

const isBranchOf = (id: string, base: string): boolean =>
  id.startsWith(`${base}.`) && /^\d+$/.test(id.slice(base.length + 1));

/**
 * Finds the session of a harness's history (decisions F1, F2). First choice is the session with its
 * id, or the branch of it that is most similar. Second is a fork of the named parent. Third, if
 * there are entries to compare, is a fork of a session with the same beginning.
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
 * Opens a session to continue it. If a fork's process died before it recorded the fork, records it
 * now, because its messages have other ids than its parent's.
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
 * Opens the session of a harness's history: an existing one, a fork, or a new one under the
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
 * Forks a session as the next branch of `base`, at the last step shared with a history that undid
 * entries. The undone entries stay in the session.
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
