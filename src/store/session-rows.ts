import { sym } from '../edn/values.js';
import { type SessionId, sessionId, sessionObjectId } from '../objects/ids.js';
import { type DatalogQuery, each, pull, triple } from '../xtdb/datalog.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { type StoredDocument, toAttribute, toDocument } from '../xtdb/documents.js';
import { type ForkPoint, marksOf } from './head.js';
import { ARRIVING, importId } from './import-parts.js';
import { formerId } from './part-id.js';
import { existingIds, VALID_SINCE, validTimeOf } from './queries.js';
import type { StoredSession } from './snapshot-rows.js';
import { stepId } from './step-part.js';

const e = sym('?e');
const id = sym('?id');
const chat = sym('?chat');
const type = sym('?type');
const turns = sym('?turns');
const upto = sym('?upto');
const since = sym('?since');
const value = sym('?value');

const OF_TYPE: DatalogQuery = { find: [e], in: [type], where: [triple(e, 'type', type)] };

/**
 * Joins a session with the chat that its head names. A join in the other direction would also match
 * every step and call. Reads only the index: 2,000 sessions take a third of the time that reading
 * their documents takes.
 */
const SESSIONS: DatalogQuery = {
  find: [id, upto, turns, since],
  in: [type],
  where: [
    triple(e, 'type', type),
    triple(e, 'session_id', id),
    triple(e, 'upto', upto),
    triple(e, 'chat_ref', chat),
    triple(chat, 'turn_count', turns),
    VALID_SINCE,
  ],
};

const sessionsWith = (attribute: 'parent' | 'roots'): DatalogQuery => ({
  find: [e, pull(e, ['xt/id', 'session_id', attribute])],
  in: [type],
  where: [triple(e, 'type', type), triple(e, attribute, value)],
});

/** The same query for some sessions only. */
const among = (query: DatalogQuery): DatalogQuery => ({ ...query, in: [type, each(e)] });

/** The sessions to read, and the parts of them. */
interface WantedSessions {
  readonly roots: boolean;
  /** Only these sessions. Default: all. */
  readonly among?: readonly SessionId[];
  /** Whether sessions with a running import are included. */
  readonly arriving?: boolean;
}

/** A session that was forked from another one. */
export interface StoredFork {
  readonly id: SessionId;
  readonly parent: ForkPoint;
}

/** Sessions per query if only some are read. */
const AT_ONCE = 500;

/** Returns the part ids of running imports. */
export async function arrivingIds(db: DbSnapshot): Promise<ReadonlySet<string>> {
  return new Set((await db.query(OF_TYPE, [ARRIVING])).map(([found]) => String(found)));
}

/** Returns the sessions without a running import. */
export const whole = <T extends { readonly id: SessionId }>(
  sessions: readonly T[],
  arriving: ReadonlySet<string>,
): readonly T[] => (arriving.size === 0 ? sessions : sessions.filter((one) => !arriving.has(importId(one.id))));

const OBJECT = sessionObjectId('' as SessionId).length;

/** Returns the ids of all sessions. Reads nothing else of them. */
export async function storedIds(db: DbSnapshot): Promise<readonly SessionId[]> {
  const rows = await db.query(OF_TYPE, ['session']);
  return rows.map(([found]) => sessionId(String(found).slice(OBJECT)));
}

type Rows = Awaited<ReturnType<DbSnapshot['query']>>;

/** Runs a query about all sessions, or about some of them. */
async function rowsOf(db: DbSnapshot, query: DatalogQuery, ids: readonly SessionId[] | undefined): Promise<Rows> {
  if (ids === undefined) return db.query(query, ['session']);
  const parts: Rows[] = [];
  for (let first = 0; first < ids.length; first += AT_ONCE) {
    const objects = ids.slice(first, first + AT_ONCE).map(sessionObjectId);
    parts.push(await db.query(among(query), ['session', objects]));
  }
  return parts.flat();
}

/** Returns the heads that have a mark, by session, with only their marks. */
async function markedHeads(
  db: DbSnapshot,
  marks: readonly ('parent' | 'roots')[],
  ids?: readonly SessionId[],
): Promise<ReadonlyMap<string, StoredDocument>> {
  const rows = await Promise.all(marks.map((mark) => rowsOf(db, sessionsWith(mark), ids)));
  const marked = new Map<string, StoredDocument>();
  for (const [, found] of rows.flat()) {
    const head = toDocument(found ?? null);
    const session = String(head.session_id);
    marked.set(session, { ...marked.get(session), ...head });
  }
  return marked;
}

/**
 * Returns every session with its position, its parent and its number of turns, or only some
 * sessions. Sessions with a running import are left out unless they are wanted.
 */
export async function storedSessions(
  db: DbSnapshot,
  { roots: withRoots, among: ids, arriving = false }: WantedSessions,
): Promise<readonly StoredSession[]> {
  const [rows, marked, hidden] = await Promise.all([
    rowsOf(db, SESSIONS, ids),
    markedHeads(db, withRoots ? ['parent', 'roots'] : ['parent'], ids),
    arriving ? new Set<string>() : arrivingIds(db),
  ]);
  const found = rows.map(([name, last, count, validTime]): StoredSession => {
    const head = marked.get(String(name));
    const { parent, roots } = head === undefined ? {} : marksOf(head);
    return {
      id: sessionId(String(name)),
      turns: Number(toAttribute('turn_count', count ?? null)),
      upto: Number(toAttribute('upto', last ?? null)),
      validTime: validTimeOf(validTime),
      parent,
      roots,
    };
  });
  return whole(found, hidden);
}

/** Returns every fork without reading other sessions. */
export async function storedForks(db: DbSnapshot): Promise<readonly StoredFork[]> {
  const [marked, hidden] = await Promise.all([markedHeads(db, ['parent']), arrivingIds(db)]);
  const forks = [...marked].flatMap(([name, head]) => {
    const { parent } = marksOf(head);
    return parent === undefined ? [] : [{ id: sessionId(name), parent }];
  });
  return whole(forks, hidden);
}

/**
 * Returns the sessions with steps beyond their heads. Queries the database only for sessions where
 * that is not known.
 */
export async function runningSessions(
  db: DbSnapshot,
  sessions: readonly StoredSession[],
): Promise<readonly StoredSession[]> {
  const next = sessions
    .filter(({ running }) => running === undefined)
    .map((session) => ({ session, part: stepId(session.id, session.upto + 1) }));
  const found = new Set(
    await existingIds(
      db,
      next.flatMap(({ part }) => [part, formerId(part)]),
    ),
  );
  const running = new Set(
    next.flatMap(({ session, part }) => (found.has(part) || found.has(formerId(part)) ? [session] : [])),
  );
  return sessions.filter((one) => running.has(one) || (one.running ?? null) !== null);
}
