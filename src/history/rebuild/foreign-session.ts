import type { SessionId } from '../../objects/ids.js';
import { HistoryError } from './history-error.js';
import type { Timeline } from './timeline.js';

/**
 * Whether another agent continues a session with its own requests, so that only its transcript is
 * known. A fork of such a session is ours until the transcript has calls of the fork itself.
 */
async function isForeign(timeline: Timeline, session: SessionId): Promise<boolean> {
  const last = (await timeline.requests(session)).at(-1);
  if (last?.kind !== 'transcript') return false;
  const own = (await timeline.present.lineage(session))?.segments.at(-1);
  return last.step >= (own?.first ?? 1);
}

/**
 * Refuses changes of the sets of a session whose requests another agent builds: nothing would read
 * them.
 * @throws {HistoryError} `foreign-session`
 */
export async function requireOwn(timeline: Timeline, session: SessionId): Promise<void> {
  if (await isForeign(timeline, session))
    throw new HistoryError(
      'foreign-session',
      `session ${session} belongs to another agent, which builds its own requests. Its objects cannot be activated, ` +
        'deactivated, pinned or unpinned, and its steps cannot be undone. Fork it with palimpsest fork, and change ' +
        'the fork',
    );
}
