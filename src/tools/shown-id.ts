import type { ObjectId } from '../objects/ids.js';
import { shortId } from '../session/short-id.js';
import type { Work } from './define-tool.js';

/** An id as the agent is shown it: full, or the shortest prefix that is unique in its session (decision D6). */
export function shownId(id: ObjectId, { session, shortIds }: Pick<Work, 'session' | 'shortIds'>): string {
  return shortIds ? shortId(id, session.state.sets.index) : id;
}
