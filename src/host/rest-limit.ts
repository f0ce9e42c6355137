import type { SessionLoan } from './backend.js';

/** Maximum number of unused sessions that stay open. */
export const MOST_AT_REST = 32;
/**
 * Maximum time in milliseconds that closing an unused session waits until the database has its
 * steps. After that, the session stays open.
 */
const DELIVERY_MS = 10_000;

/** An open session and its number of users. */
export interface HeldSession {
  readonly loan: SessionLoan | Promise<SessionLoan>;
  running: number;
  /** Whether it is being closed. */
  leaving: boolean;
}

/** Exceptions and callback of the rule. */
interface RestOptions<Key, Held> {
  /** Whether a session may be closed; by default all may. */
  readonly mayLeave?: (key: Key) => boolean;
  /** Receives a session that was removed, before it is closed. */
  readonly onLeave?: (key: Key, left: Held) => void;
}

/**
 * Closes the unused sessions of a collection, except the most recently used ones. Each is removed
 * and closed once the database has its steps. During an outage, a session with undelivered steps
 * stays open, because its next opening would be rejected. Returns at once.
 *
 * @param held in the order of their use
 */
export function putAwayResting<Key, Held extends HeldSession>(
  held: Map<Key, Held>,
  options: RestOptions<Key, Held> = {},
): void {
  const { mayLeave = () => true, onLeave = () => undefined } = options;
  const putAway = async (key: Key, one: Held): Promise<void> => {
    one.leaving = true;
    try {
      const loan = await one.loan;
      if (!(await loan.session.isDelivered(DELIVERY_MS)) || one.running > 0 || held.get(key) !== one) return;
      held.delete(key);
      onLeave(key, one);
      await loan.release();
    } finally {
      one.leaving = false;
    }
  };
  const resting = [...held].filter(([key, { running }]) => running === 0 && mayLeave(key));
  for (const [key, one] of resting.slice(0, Math.max(0, resting.length - MOST_AT_REST))) {
    if (!one.leaving) void putAway(key, one);
  }
}
