import type { SessionId } from '../../objects/ids.js';
import type { SessionState } from '../../session/session-state.js';
import type { ForkPoint } from '../../store/head.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import { defined } from '../../values/defined.js';

/** One session of a database, as a list shows it. */
export interface SessionSummary {
  readonly id: SessionId;
  readonly turns: number;
  /** Steps as of its last head: exact for a closed session and for one that is open here, else those before the running turn. */
  readonly steps: number;
  /** When it was worked with last, as far as its head tells; exact for one that is open here. */
  readonly lastActivity: Date;
  /** What it was forked from (decision F2). */
  readonly parent?: ForkPoint;
  /** Whether this client has it open. */
  readonly openHere: boolean;
}

function liveSummary(state: SessionState, stored: SessionSummary | undefined): SessionSummary {
  const lastActivity = new Date(Math.max(state.lastAt, stored?.lastActivity.getTime() ?? 0));
  const parent = stored?.parent === undefined ? {} : { parent: stored.parent };
  return { id: state.id, turns: state.turn, steps: state.seq, lastActivity, ...parent, openHere: true };
}

/** All sessions at a snapshot, and those that this client has open beyond it, the one that was worked with last first. One query. */
export async function listSessions(snapshot: StoreSnapshot, open: readonly SessionState[]): Promise<readonly SessionSummary[]> {
  const found = new Map<SessionId, SessionSummary>();
  for (const { id, turns, upto, validTime, parent } of await snapshot.sessions()) {
    found.set(id, { id, turns, steps: upto, lastActivity: validTime, ...defined({ parent }), openHere: false });
  }
  for (const state of open) found.set(state.id, liveSummary(state, found.get(state.id)));
  return [...found.values()].sort((a, b) => b.lastActivity.getTime() - a.lastActivity.getTime() || (a.id < b.id ? -1 : 1));
}
