import type { ObjectId } from '../objects/ids.js';
import { shortId, shortIds } from '../session/short-id.js';
import type { Work } from './define-tool.js';

type Context = Pick<Work, 'session' | 'shortIds'>;

/** An id as the agent is shown it: full, or the shortest prefix that is unique in its session (decision D6). */
export function shownId(id: ObjectId, { session, shortIds: short }: Context): string {
  return short ? shortId(id, session.state.sets.index) : id;
}

/** The same for many ids of the session, which are compared once. */
export function shownIds({ session, shortIds: short }: Context): (id: ObjectId) => string {
  if (!short) return (id) => id;
  const names = shortIds(session.state.sets.index);
  return (id) => names.get(id) ?? id;
}
