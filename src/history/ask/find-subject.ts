import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { findSession, sessionOf } from '../rebuild/find-session.js';
import { findObject, type ObjectSearch, requireObject } from './find-object.js';

/** What a name stands for where both objects and sessions are meant. */
export type Subject = { readonly kind: 'object'; readonly id: ObjectId } | { readonly kind: 'session'; readonly session: SessionId };

/**
 * The object or session that a reviewer names. A session's exact id wins over objects whose ids merely begin with it, as those of its calls do; an
 * object wins over the beginning of a session's id. Throws HistoryError `unknown-object`, `ambiguous`.
 */
export async function findSubject(snapshot: StoreSnapshot, name: string, search: ObjectSearch): Promise<Subject> {
  const exact = await sessionOf(snapshot, name);
  if (exact !== undefined) return { kind: 'session', session: exact };
  const id = await findObject(snapshot, name, search);
  if (id !== undefined) return { kind: 'object', id };
  const session = await findSession(snapshot, name);
  if (session !== undefined) return { kind: 'session', session };
  return { kind: 'object', id: await requireObject(snapshot, name, search) };
}
