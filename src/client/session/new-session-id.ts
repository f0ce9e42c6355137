import { randomInt } from 'node:crypto';
import { type SessionId, sessionId } from '../../objects/ids.js';

const LETTERS = 'abcdefghjkmnpqrstvwxyz0123456789';

/** A new session's id: the day and eight random letters, short because tool call ids carry it. */
export function newSessionId(now: Date): SessionId {
  const random = Array.from({ length: 8 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  return sessionId(`${now.toISOString().slice(0, 10).replaceAll('-', '')}-${random}`);
}
