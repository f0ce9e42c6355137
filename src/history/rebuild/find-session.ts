import { quoted } from '../../objects/errors.js';
import type { SessionId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { similarNames } from '../../values/similar-names.js';
import { HistoryError } from './history-error.js';

const SHOWN = 5;

const INFRASTRUCTURE = ['session', 'chat', 'system_prompt'] as const;

/** The session of exactly this id; undefined when there is none. */
export async function sessionOf(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  return (await snapshot.sessions()).map(({ id }) => id).find((id) => id === name);
}

/**
 * The session that a reviewer names: by its id, the id of one of its infrastructure objects, or a unique beginning of its id. Undefined
 * when none fits.
 * @throws {HistoryError} `ambiguous`, naming candidates
 */
export async function findSession(snapshot: StoreSnapshot, name: string): Promise<SessionId | undefined> {
  const ids = (await snapshot.sessions()).map(({ id }) => id);
  const exact = ids.find((id) => id === name || INFRASTRUCTURE.some((type) => name === `${type}:${id}`));
  if (exact !== undefined) return exact;
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
