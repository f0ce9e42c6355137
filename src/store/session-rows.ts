import { sym } from '../edn/values.js';
import type { SessionId } from '../objects/ids.js';
import { type DatalogQuery, pull, triple } from '../xtdb/datalog.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { type StoredDocument, toAttribute, toDocument } from '../xtdb/documents.js';
import { ARRIVING, importId } from './import-parts.js';
import { VALID_SINCE, validTimeOf } from './queries.js';

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

/** A session by its head, with the number of its turns. */
export interface SessionRow {
  readonly session: string;
  readonly turns: number;
  /** The last step that the head includes. */
  readonly upto: number;
  readonly validTime: Date;
  /**
   * A head with only the marks for parent and, if wanted, roots. Undefined if the head has neither
   * mark.
   */
  readonly marked: StoredDocument | undefined;
}

/** Returns the part ids of running imports. */
async function arrivingIds(db: DbSnapshot): Promise<readonly string[]> {
  return (await db.query(OF_TYPE, [ARRIVING])).flatMap(([found]) => (typeof found === 'string' ? [found] : []));
}

/**
 * Returns every session with its position, its parent and its number of turns. Sessions with a
 * running import are left out.
 */
export async function sessionRows(
  db: DbSnapshot,
  { roots }: { readonly roots: boolean },
): Promise<readonly SessionRow[]> {
  const marking = roots ? (['parent', 'roots'] as const) : (['parent'] as const);
  const [rows, arriving, ...marks] = await Promise.all([
    db.query(SESSIONS, ['session']),
    arrivingIds(db),
    ...marking.map(async (attribute) =>
      (await db.query(sessionsWith(attribute), ['session'])).map(([, head]) => toDocument(head ?? null)),
    ),
  ]);
  const hidden = new Set(arriving);
  const marked = new Map<string, StoredDocument>();
  for (const head of marks.flat()) {
    const session = String(head.session_id);
    marked.set(session, { ...marked.get(session), ...head });
  }
  return rows.flatMap(([id, last, count, validTime]) => {
    const session = String(id);
    if (hidden.has(importId(session as SessionId))) return [];
    return {
      session,
      turns: Number(toAttribute('turn_count', count ?? null)),
      upto: Number(toAttribute('upto', last ?? null)),
      validTime: validTimeOf(validTime),
      marked: marked.get(session),
    };
  });
}
