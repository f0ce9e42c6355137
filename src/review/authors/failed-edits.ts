import { kindOfCall, MAY_CHANGE } from '../../history/rebuild/call-names.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { LoggedTurn } from '../ask/logged-turn.js';
import type { EditSight } from './edit-sight.js';

/** The text of a file that the agent had seen before its edit of the file failed. */
export interface FileSight extends EditSight {
  readonly object: ObjectId;
}

/** Returns what the agent had seen of the files of the failed edits in some turns, by call. */
export async function failedEdits(
  timeline: Timeline,
  turns: readonly LoggedTurn[],
): Promise<ReadonlyMap<ObjectId, readonly FileSight[]>> {
  const found = new Map<ObjectId, readonly FileSight[]>();
  const ids = new Map<SessionId, Set<ObjectId>>();
  for (const { session, calls } of turns)
    for (const { id, status, tool } of calls)
      if (status !== 'ok' && MAY_CHANGE.has(kindOfCall({ tool }))) {
        const known = ids.get(session) ?? new Set();
        ids.set(session, known.add(id));
      }
  if (ids.size === 0) return found;
  const { editSights } = await import('./edit-sights.js');
  for (const [session, own] of ids) {
    const sights = await editSights(timeline, session, (_, call) => own.has(call.id));
    for (const { call, files } of sights.values())
      found.set(
        call,
        [...files].map(([object, sight]) => ({ object, ...sight })),
      );
  }
  return found;
}
