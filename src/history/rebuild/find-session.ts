import { quoted } from '../../objects/errors.js';
import {
  chatObjectId,
  isInfrastructureId,
  type ObjectId,
  type SessionId,
  sessionId,
  sessionObjectId,
} from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { similarNames } from '../../values/similar-names.js';
import { refuseErased } from './erased.js';
import { HistoryError } from './history-error.js';

const SHOWN = 5;

const INFRASTRUCTURE = ['session', 'chat', 'system_prompt'] as const;

/**
 * Returns the session with exactly this id. Undefined if there is none. It takes one look-up,
 * however many sessions there are.
 */
export async function sessionOf(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  if (name === '' || !name.isWellFormed()) return undefined;
  const [head, isArriving] = await Promise.all([
    snapshot.sessionHead(name as SessionId),
    snapshot.documents.isArriving(name),
  ]);
  return head?.document.type === 'session' && !isArriving ? (name as SessionId) : undefined;
}

/** Returns the session with exactly this id, or with an infrastructure object of this id. */
async function exactSession(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  const type = INFRASTRUCTURE.find((prefix) => name.startsWith(`${prefix}:`));
  return (
    (await sessionOf(snapshot, name)) ??
    (type === undefined ? undefined : sessionOf(snapshot, name.slice(type.length + 1)))
  );
}

/**
 * Finds the session that a reviewer names by its id, the id of one of its infrastructure objects,
 * or a unique prefix of its id. Undefined if none matches. The full id of an erased session never
 * matches another session whose id begins with it.
 *
 * @throws {HistoryError} `erased`; `ambiguous`, with candidates
 */
export async function findSession(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  const exact = await exactSession(snapshot, name);
  if (exact !== undefined) return exact;
  await refuseErased(snapshot, [sessionObjectId(name as SessionId), name]);
  const ids = (await snapshot.sessions()).map(({ id }) => id);
  const matches = name === '' ? [] : ids.filter((id) => id.startsWith(name)).sort();
  if (matches.length > 1) {
    const shown = matches.slice(0, SHOWN).join(', ');
    const more = matches.length > SHOWN ? ` and ${matches.length - SHOWN} more` : '';
    throw new HistoryError('ambiguous', `${matches.length} sessions begin with ${quoted(name)}: ${shown}${more}`);
  }
  return matches[0];
}

/**
 * Finds a session like `findSession`, but throws if no session matches.
 *
 * @throws {HistoryError} `unknown-session`, with the most similar ids; `erased`; `ambiguous`
 */
export async function requireSession(snapshot: StoreSnapshot, name: string): Promise<SessionId> {
  const found = await findSession(snapshot, name);
  if (found !== undefined) return found;
  const sessions = [...(await snapshot.sessions())].sort((a, b) => b.validTime.getTime() - a.validTime.getTime());
  const ids = sessions.map(({ id }) => id);
  const like = similarNames(name, ids);
  const hint =
    ids.length === 0
      ? 'the database holds no session; palimpsest open imports one'
      : like.length > 0
        ? `did you mean ${like.join(' or ')}?`
        : `the latest ones are ${ids.slice(0, 3).join(', ')}; palimpsest sessions lists all`;
  throw new HistoryError('unknown-session', `there is no session ${quoted(name)}: ${hint}`);
}

/** Returns the session that an infrastructure object or a call belongs to. Undefined for a file. */
export async function ownSession(snapshot: StoreSnapshot, id: ObjectId): Promise<SessionId | undefined> {
  if (isInfrastructureId(id)) return sessionId(id.slice(id.indexOf(':') + 1));
  const chat = (await snapshot.heads([id])).get(id)?.document.chat_ref;
  const prefix = chatObjectId('' as SessionId);
  return typeof chat === 'string' && chat.startsWith(prefix) ? sessionId(chat.slice(prefix.length)) : undefined;
}
