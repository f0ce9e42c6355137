import type { SessionLoan } from './backend.js';

/** How many sessions stay open while nobody uses them. */
const MOST_AT_REST = 32;
/** How long a session that is put away waits for its steps to reach the database, milliseconds; then it stays open. */
const DELIVERY_MS = 10_000;

/** A session that is held open for others, and how many of them use it now. */
export interface HeldSession {
  readonly loan: SessionLoan | Promise<SessionLoan>;
  running: number;
  /** It is being put away. */
  leaving: boolean;
}

/** The rule's exceptions, and who is told. */
interface RestOptions<Key, Held> {
  /** Whether a session may be put away at all; every one may if left out. */
  readonly mayLeave?: (key: Key) => boolean;
  /** Called with a session that was taken out, before it is closed. */
  readonly onLeave?: (key: Key, left: Held) => void;
}

/**
 * Puts away the sessions of a collection that rest, but for those that were used last: each is taken out of the collection and closed once the database has
 * its steps. What a session still has to deliver would be refused to its next opening while the database is away: then it stays open. Returns at once.
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
