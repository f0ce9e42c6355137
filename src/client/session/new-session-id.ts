import { randomInt } from 'node:crypto';
import { type SessionId, sessionId } from '../../objects/ids.js';

const LETTERS = 'abcdefghjkmnpqrstvwxyz0123456789';

/**
 * Returns a new session id: the day and eight random letters. It is short because tool call ids
 * contain it.
 */
export function newSessionId(now: Date): SessionId {
  const random = Array.from({ length: 8 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return sessionId(`${now.toISOString().slice(0, 10).replaceAll('-', '')}-${random}`);
}
