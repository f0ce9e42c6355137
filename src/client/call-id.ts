import { type ObjectId, objectId } from '../objects/ids.js';
import type { SessionState } from '../session/session-state.js';
import type { ObjectStore } from '../store/object-store.js';

/** Longest id of a harness that is kept as it is; the marks that make it unique need room. */
const LONGEST = 400;

/** An id for a call that comes again in the same chat: `{id}~2`, `{id}~3`. */
function repeated(state: SessionState, id: string): string {
  if (!state.has(id as ObjectId)) return id;
  for (let n = 2; ; n++) if (!state.has(`${id}~${n}` as ObjectId)) return `${id}~${n}`;
}

/**
 * The id of a tool call object (decision B2): the harness's own when it is free or this chat's, with the session's id behind it when another chat has
 * it; `{session}:{step}` where the harness gives none. What a fork shares with its parent is this chat's; what the parent called later is not.
 */
export async function callIdFor(store: ObjectStore, state: SessionState, given: string | undefined): Promise<ObjectId> {
  if (given === undefined || given === '') return objectId(repeated(state, `${state.id}:${state.seq + 1}`));
  const wanted = given.toWellFormed().slice(0, LONGEST);
  const id = repeated(state, wanted);
  const taken = (await (await store.now()).heads([id])).has(id);
  return objectId(taken ? repeated(state, `${wanted}@${state.id}`) : id);
}
