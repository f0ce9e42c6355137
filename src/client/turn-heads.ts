import { chatVersion, sessionVersion } from '../objects/infrastructure.js';
import type { SessionState } from '../session/session-state.js';
import type { ForkPoint } from '../store/head.js';
import type { Put } from '../store/object-store.js';

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
  readonly puts: readonly Put[];
  readonly position: HeadPosition;
}

/**
 * The versions of chat and session that include every step of a state; their hashes cover the whole logical documents. `parent` is what a fork
 * continues, by default as its heads before say.
 */
export function headsAt(
  state: SessionState,
  before: HeadPosition | undefined,
  at: number,
  epoch: number,
  parent: ForkPoint | undefined = before?.parent,
): TurnHeads {
  const validTime = new Date(before === undefined ? at : Math.max(at, before.at + 1));
  const fork = parent === undefined ? {} : { parent };
  const upto = state.seq;
  const puts = [
    { version: chatVersion(state.id, state.turns), marks: { upto, ...fork }, validTime },
    { version: sessionVersion(state.id, state.sets), marks: { epoch, upto, ...fork }, validTime },
  ];
  return { puts, position: { epoch, upto, at: validTime.getTime(), ...fork } };
}

/**
 * The heads to write where a turn ends and the next one begins: the closed turn's versions, unless the head includes all of it already, and those of
 * the turn that begins.
 */
export function turnHeads(before: SessionState, after: SessionState, position: HeadPosition): TurnHeads {
  const closes = before.seq > position.upto;
  const closed = closes ? headsAt(before, position, before.lastAt, position.epoch) : undefined;
  const opened = headsAt(after, closed?.position ?? position, after.lastAt, position.epoch);
  return { puts: [...(closed?.puts ?? []), ...opened.puts], position: opened.position };
}
