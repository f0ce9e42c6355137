import { HeadHashes } from '../../objects/head-hashes.js';
import type { SessionState } from '../../session/session-state.js';
import { type ForkPoint, runningChatHead, runningSessionHead } from '../../store/head.js';
import type { StoredPut } from '../../store/object-store.js';

/** Where a session's head stands in the database. */
export interface HeadPosition {
  readonly epoch: number;
  /** The last step that the head includes. */
  readonly upto: number;
  /** Valid time of the head, milliseconds. */
  readonly at: number;
  /** What a fork continues (decision F2); every version of its heads says so. */
  readonly parent?: ForkPoint;
}

/** The two heads of a session after a state, and where they then stand (decision G4). */
export interface TurnHeads {
  readonly puts: readonly StoredPut[];
  readonly position: HeadPosition;
}

/** What heads are made with beside the state. */
export interface HeadOptions {
  /** What a fork continues; by default as its heads before say. */
  readonly parent?: ForkPoint | undefined;
  /** Kept from one turn to the next, so that a turn of a long chat costs no more than one of a short chat. */
  readonly hashes?: HeadHashes;
}

/** The versions of chat and session that include every step of a state; their hashes cover the whole logical documents. */
export function headsAt(
  state: SessionState,
  before: HeadPosition | undefined,
  at: number,
  epoch: number,
  { parent = before?.parent, hashes = new HeadHashes(state.id) }: HeadOptions = {},
): TurnHeads {
  const validTime = new Date(before === undefined ? at : Math.max(at, before.at + 1));
  const fork = parent === undefined ? {} : { parent };
  const upto = state.seq;
  const puts = [
    { head: runningChatHead(state, hashes, { upto, ...fork }), texts: [], validTime },
    { head: runningSessionHead(state, hashes, { epoch, upto, ...fork }), texts: [], validTime },
  ];
  return { puts, position: { epoch, upto, at: validTime.getTime(), ...fork } };
}

/**
 * The heads to write where a turn ends and the next one begins: the closed turn's versions, unless the head includes all of it already, and those of
 * the turn that begins.
 */
export function turnHeads(before: SessionState, after: SessionState, position: HeadPosition, hashes: HeadHashes): TurnHeads {
  const closes = before.seq > position.upto;
  const closed = closes ? headsAt(before, position, before.lastAt, position.epoch, { hashes }) : undefined;
  const opened = headsAt(after, closed?.position ?? position, after.lastAt, position.epoch, { hashes });
  return { puts: [...(closed?.puts ?? []), ...opened.puts], position: opened.position };
}
