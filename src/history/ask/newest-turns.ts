import { type SessionId, sessionObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { Timeline } from '../rebuild/timeline.js';
import { begins, type TurnSpan, turnSpans } from '../rebuild/turn-spans.js';

/** Steps that are read for each turn that is wanted, before more are. */
const STEPS_A_TURN = 8;
const FEWEST_STEPS = 64;
/** Steps of a running turn that are asked for at once: they lie beyond the head, which does not tell how many there are. */
const RUNNING_STEPS = 64;

/**
 * The newest turns of a session that had begun by a moment (milliseconds since 1970), at most `count`, oldest first: read from the session's end on, so
 * that a few turns of a long session cost what those of a short one do.
 */
export async function newestTurns(timeline: Timeline, session: SessionId, count: number, until: number): Promise<readonly TurnSpan[]> {
  const { present } = timeline;
  const id = sessionObjectId(session);
  const [heads, lineage = []] = await Promise.all([present.heads([id]), present.lineage(session)]);
  let size = Math.max(FEWEST_STEPS, count * STEPS_A_TURN);
  const upto = heads.get(id)?.marks.upto ?? 0;
  let first = Math.max(1, upto - size + 1);
  const near = upto + RUNNING_STEPS;
  let steps: readonly Step[] = await present.stepsAlong(session, lineage, { first, last: near });
  if (steps.at(-1)?.seq === near) {
    steps = [...steps, ...(await present.stepsAlong(session, lineage, { first: near + 1, last: Number.MAX_SAFE_INTEGER }))];
  }
  for (;;) {
    // The first turn of those that were read may have begun before.
    const turns = turnSpans(steps).slice(first === 1 ? 0 : 1);
    const wanted = turns.filter((span) => begins(span) <= until);
    if (wanted.length >= count || first === 1) return count === 0 ? [] : wanted.slice(-count);
    size *= 2;
    const last = first - 1;
    first = Math.max(1, first - size);
    steps = [...(await present.stepsAlong(session, lineage, { first, last })), ...steps];
  }
}
