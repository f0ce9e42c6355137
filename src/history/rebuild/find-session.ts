import { quoted } from '../../objects/errors.js';
import type { SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { similarNames } from '../../values/similar-names.js';
import { HistoryError } from './history-error.js';

const SHOWN = 5;

const INFRASTRUCTURE = ['session', 'chat', 'system_prompt'] as const;

/** The session of exactly this id; undefined when there is none. One look-up, however many sessions there are. */
export async function sessionOf(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  if (name === '' || !name.isWellFormed()) return undefined;
  const [head, isArriving] = await Promise.all([
    snapshot.sessionHead(name as SessionId),
    snapshot.documents.isArriving(name),
  ]);
  return head?.document.type === 'session' && !isArriving ? (name as SessionId) : undefined;
}

/** The session of exactly this id, or of an infrastructure object of this id. */
async function exactSession(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  const type = INFRASTRUCTURE.find((prefix) => name.startsWith(`${prefix}:`));
  return (
    (await sessionOf(snapshot, name)) ??
    (type === undefined ? undefined : sessionOf(snapshot, name.slice(type.length + 1)))
  );
}

/**
 * The session that a reviewer names: by its id, the id of one of its infrastructure objects, or a unique beginning of its id. Undefined
 * when none fits.
 * @throws {HistoryError} `ambiguous`, naming candidates
 */
export async function findSession(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  const exact = await exactSession(snapshot, name);
  if (exact !== undefined) return exact;
  const ids = (await snapshot.sessions()).map(({ id }) => id);
  const matches = name === '' ? [] : ids.filter((id) => id.startsWith(name)).sort();
  if (matches.length > 1) {
    const shown = matches.slice(0, SHOWN).join(', ');
    const more = matches.length > SHOWN ? ` and ${matches.length - SHOWN} more` : '';
    throw new HistoryError('ambiguous', `${matches.length} sessions begin with ${quoted(name)}: ${shown}${more}`);
  }
  return matches[0];
}

/** As `findSession`; throws HistoryError `unknown-session`, naming those most like it. */
export async function requireSession(snapshot: StoreSnapshot, name: string): Promise<SessionId> {
  const found = await findSession(snapshot, name);
  if (found !== undefined) return found;
  const sessions = [...(await snapshot.sessions())].sort((a, b) => b.validTime.getTime() - a.validTime.getTime());
  const ids = sessions.map(({ id }) => id);
  const like = similarNames(name, ids);
  const hint =
    ids.length === 0
      ? 'the database holds no session'
      : like.length > 0
        ? `did you mean ${like.join(' or ')}?`
        : `the latest ones are ${ids.slice(0, 3).join(', ')}; palimpsest sessions lists all`;
  throw new HistoryError('unknown-session', `there is no session ${quoted(name)}: ${hint}`);
}
