import { listSessions } from '../client/session/open-session.js';
import { askedMoment } from '../history/ask/reference.js';
import { sessionsAnswer } from '../http/api-answers.js';
import { sessionLockOwners } from '../lease/session-lock.js';
import { answerReview } from './answer-review.js';
import { pointText, shownTime } from './print-basis.js';
import { columns } from './print-rows.js';
import type { ReviewFlags } from './review-flags.js';

/** `sessions` */
export async function sessionsAction(flags: ReviewFlags): Promise<void> {
  await answerReview(flags, async ({ timeline, dataDir }) => {
    const point = await timeline.find(askedMoment(flags), undefined);
    const all = await listSessions(point.snapshot, []);
    const shown = flags.limit === undefined ? all : all.slice(0, flags.limit);
    const owners = new Map((await sessionLockOwners(dataDir)).map((owner) => [String(owner.session), owner.pid]));
    const rows = shown.map(({ id, turns, steps, lastActivity, parent }) => {
      const pid = owners.get(id);
      const fork = parent === undefined ? '' : `fork of ${parent.session} at step ${parent.seq}`;
      return [
        id,
        String(turns),
        String(steps),
        shownTime(lastActivity),
        [fork, pid === undefined ? '' : `open in process ${pid}`].filter((text) => text !== '').join(', '),
      ];
    });
    return {
      lines: (colours) =>
        rows.length === 0 ? ['no sessions'] : columns(['session', 'turns', 'steps', 'last activity', ''], rows, colours),
      holds: pointText(point),
      json: { ...sessionsAnswer(shown), open: [...owners].map(([session, pid]) => ({ session, pid })) },
    };
  });
}
