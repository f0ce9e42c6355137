import type { SessionId } from '../../objects/ids.js';
import { requireSession } from './find-session.js';
import { askedMoment, type MomentText, parseReference, type When } from './moment.js';
import type { Timeline } from './timeline.js';

/** A session and the moment of a question about it. */
export interface AskedSession {
  readonly session: SessionId;
  readonly when: When;
}

/**
 * Resolves a reference, `S` or `S@MOMENT`, to its session and moment.
 *
 * @throws {HistoryError} `unknown-session`, `ambiguous`, `malformed-moment`
 */
export async function askedSession(timeline: Timeline, reference: string, text: MomentText): Promise<AskedSession> {
  const { name, moment } = parseReference(reference);
  const when = askedMoment(text, moment);
  return { session: await requireSession(timeline.present, name), when };
}
