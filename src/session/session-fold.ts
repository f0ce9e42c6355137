import { quoted } from '../objects/errors.js';
import type { ObjectId } from '../objects/ids.js';
import type { SessionSets } from '../objects/sets.js';
import type { Step } from '../objects/step.js';
import { defined } from '../values/defined.js';
import { PersistentList, PersistentSet } from '../values/persistent-collections.js';
import { SessionError } from './errors.js';

/**
 * The sets of a running session [§3.1], with constant-time membership. A changed value shares
 * unchanged parts with the previous one. So a step costs the same in a session of ten thousand
 * objects as in one of ten.
 */
export interface LiveSets {
  readonly index: PersistentSet<ObjectId>;
  readonly active: PersistentSet<ObjectId>;
  readonly pinned: PersistentSet<ObjectId>;
  /** The tool calls of the index. */
  readonly calls: PersistentSet<ObjectId>;
  /** Active tool results without a pin, which auto-collapse may deactivate [§4.3]. */
  readonly loose: PersistentSet<ObjectId>;
}

const NO_IDS: PersistentSet<ObjectId> = PersistentSet.from([]);

/** The sets of a session before its first step. */
export const NO_LIVE_SETS: LiveSets = { index: NO_IDS, active: NO_IDS, pinned: NO_IDS, calls: NO_IDS, loose: NO_IDS };

const NONE: readonly ObjectId[] = [];

/**
 * Returns the sets after a step. Removals come before additions.
 * @throws {SessionError} `unknown-object` (decision D1)
 */
export function setsAfter(sets: LiveSets, { changes, call }: Pick<Step, 'changes' | 'call'>): LiveSets {
  const { activate = NONE, deactivate = NONE, pin = NONE, unpin = NONE } = changes;
  const index = sets.index.with(NONE, changes.index ?? NONE);
  for (const id of [...activate, ...pin]) {
    if (!index.has(id)) {
      throw new SessionError(
        'unknown-object',
        `${quoted(id)} would become active or pinned without being in the session index`,
      );
    }
  }
  const active = sets.active.with(deactivate, activate);
  const pinned = sets.pinned.with(unpin, pin);
  const calls = call === undefined ? sets.calls : sets.calls.with(NONE, [call.id]);
  const touched = [...deactivate, ...unpin, ...activate, ...pin];
  const isLoose = (id: ObjectId): boolean => calls.has(id) && active.has(id) && !pinned.has(id);
  const loose = sets.loose.with(
    touched.filter((id) => !isLoose(id)),
    touched.filter(isLoose),
  );
  return { index, active, pinned, calls, loose };
}

/** Returns the sets as plain arrays in insertion order [§3.1]. */
export function plainSets({ index, active, pinned }: LiveSets): SessionSets {
  return { index: index.toArray(), active: active.toArray(), pinned: pinned.toArray() };
}

/**
 * The tool results that became fresh in each turn, newest last: those of its calls, and activated
 * ones. One entry per result and turn.
 */
export interface ResultWindow {
  /** The turns before the last one with results. */
  readonly earlier: PersistentList<PersistentSet<ObjectId>>;
  /** The last turn with results. */
  readonly last: PersistentSet<ObjectId>;
}

/** The window of a session without tool results. */
export const NO_RESULTS: ResultWindow = { earlier: PersistentList.from([]), last: NO_IDS };

/**
 * Returns the window after results became fresh in a turn, in the given order. A result stays
 * listed in earlier turns.
 */
export function windowAfter({ earlier, last }: ResultWindow, turn: number, fresh: readonly ObjectId[]): ResultWindow {
  if (fresh.length === 0) return { earlier, last };
  const between = turn - 1 - earlier.size;
  const passed = between <= 0 ? earlier : earlier.concat([last, ...Array.from({ length: between - 1 }, () => NO_IDS)]);
  const results = fresh.reduce((set, id) => set.with([id], [id]), between <= 0 ? last : NO_IDS);
  return { earlier: passed, last: results };
}

/**
 * Returns the newest results of a turn, newest first. The cost grows with `count`, not with the
 * turn.
 */
export function newestResults({ earlier, last }: ResultWindow, turn: number, count: number): readonly ObjectId[] {
  const results = turn - 1 === earlier.size ? last : earlier.get(turn - 1);
  return results?.newest(count) ?? [];
}

/** A step's addition to the chat, for comparison with a harness's history (decision F1). */
export type ChatMark = Pick<Step, 'seq' | 'turn' | 'message' | 'native' | 'event'> & { readonly call?: ObjectId };

/** The marks of a session before its first message. */
export const NO_MARKS: PersistentList<ChatMark> = PersistentList.from([]);

/** Returns the marks of steps. A step that only changes sets has none. */
export function marksOfSteps(steps: readonly Step[]): readonly ChatMark[] {
  return steps.flatMap(({ seq, turn, message, native, event, call }) => {
    if (message === undefined && call === undefined && event === undefined) return [];
    return [{ seq, turn, ...defined({ message, native, event }), ...(call === undefined ? {} : { call: call.id }) }];
  });
}
