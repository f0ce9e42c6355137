import { type AskedSession, askedSession } from '../../history/rebuild/asked-session.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { type Answer, answerReview, type ReviewFlags } from './answer.js';

/** The session and moment of a question, and the database to read. */
export interface ReviewedSession extends AskedSession {
  readonly timeline: Timeline;
}

/** Like `answerReview`, for the session and moment that a reference and the flags select. */
export async function answerSession(
  reference: string,
  flags: ReviewFlags,
  ask: (asked: ReviewedSession) => Promise<Answer>,
): Promise<void> {
  await answerReview(flags, async ({ timeline }) =>
    ask({ timeline, ...(await askedSession(timeline, reference, flags)) }),
  );
}
