import type { SessionVerification } from '../history/verify/verify-session.js';
import type { ReviewAnswer } from './review-schemas.js';

/** What was found when a session was verified. */
export function verifyAnswer({ session, ok, contexts, answers, parts }: SessionVerification): ReviewAnswer<'Verify'> {
  return {
    session,
    ok,
    contexts: {
      total: contexts.total,
      equal: contexts.equal,
      inherited: contexts.inherited,
      by_delivery: { ...contexts.byDelivery },
      handed_lists: contexts.handedLists,
      unequal: contexts.unequal.map(({ session: of, turn, step, at, delivered, sha256, cause, why, rebuilt, section, object, line }) => ({
        session: of,
        turn,
        step,
        at: at.toISOString(),
        delivered,
        sha256,
        cause,
        why,
        rebuilt: rebuilt ?? null,
        section: section ?? null,
        object: object ?? null,
        line: line ?? null,
      })),
    },
    answers: {
      read: answers.unread !== true,
      total: answers.total,
      equal: answers.equal,
      from_others: answers.fromOthers,
      kept_only: answers.keptOnly,
      unequal: answers.unequal.map(({ turn, step, call, sha256, cause, why }) => ({ turn, step, call, sha256, cause, why })),
    },
    parts: { checked: parts.checked, damages: parts.damages.map(({ part, what, of }) => ({ part, what, of })) },
  };
}
