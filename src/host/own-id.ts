import { createHash } from 'node:crypto';
import { type SessionId, sessionId } from '../objects/ids.js';

/** Returns our id of an agent's session: the agent's, with dashes for forbidden characters. */
export function ownId(native: string): SessionId {
  const id = native.replace(/[^A-Za-z0-9._:@+-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  const digest = (): string => createHash('sha256').update(native).digest('hex').slice(0, 10);
  return sessionId(id === '' || id.length > 180 ? `r${digest()}` : id);
}
