import { type ObjectId, objectId } from '../objects/ids.js';
import { withinLimit } from '../process/within-limit.js';
import type { SessionState } from '../session/session-state.js';
import type { SessionEnvironment } from './session-environment.js';

/** Longest id of a harness that is kept as it is; the marks that make it unique need room. */
const LONGEST = 400;

/** An id for a call that comes again in the same chat: `{id}~2`, `{id}~3`. */
function repeated(state: SessionState, id: string): string {
  if (!state.has(id as ObjectId)) return id;
  for (let n = 2; ; n++) if (!state.has(`${id}~${n}` as ObjectId)) return `${id}~${n}`;
}

/** How long an agent waits for the database to say whether another chat has an id, milliseconds. */
const LOOK_UP_MS = 250;

/** Whether another chat has an id; assumed when the database does not answer in time: an id that is made unique is never wrong. */
async function isTaken({ store, outbox }: SessionEnvironment, id: ObjectId): Promise<boolean> {
  if (outbox.pending(id) !== undefined) return true;
  const look = store.latest().then(async (snapshot) => (await snapshot.heads([id])).has(id));
  if (!outbox.isDurable) return look;
  return withinLimit(
    look.catch(() => true),
    LOOK_UP_MS,
    () => true,
  );
}

/**
 * The id of a tool call object (decision B2): the harness's own when it is free or this chat's, with the session's id behind it when another chat has
 * it; `{session}:{step}` where the harness gives none. What a fork shares with its parent is this chat's; what the parent called later is not.
 */
export async function callIdFor(environment: SessionEnvironment, state: SessionState, given: string | undefined): Promise<ObjectId> {
  if (given === undefined || given === '') return objectId(repeated(state, `${state.id}:${state.seq + 1}`));
  const wanted = given.toWellFormed().slice(0, LONGEST);
  const id = repeated(state, wanted) as ObjectId;
  // An id with this session's id behind it is no other chat's.
  if (wanted.endsWith(`@${state.id}`)) return objectId(id);
  return objectId((await isTaken(environment, id)) ? repeated(state, `${wanted}@${state.id}`) : id);
}
