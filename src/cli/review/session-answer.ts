import { type AskedSession, askedSession } from '../../history/ask/asked-session.js';
import type { Timeline } from '../../history/rebuild/timeline.js';
import { type Answer, answerReview, type ReviewFlags } from './answer.js';

/** A session that is asked about, as of when, and what it is read from. */
export interface ReviewedSession extends AskedSession {
  readonly timeline: Timeline;
}

/** As `answerReview`, about the session and the moment that a reference and the flags name. */
export async function answerSession(
  reference: string,
  flags: ReviewFlags,
  ask: (asked: ReviewedSession) => Promise<Answer>,
): Promise<void> {
  await answerReview(flags, async ({ timeline }) => ask({ timeline, ...(await askedSession(timeline, reference, flags)) }));
}
