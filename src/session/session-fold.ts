import { List, OrderedSet, Set as UnorderedSet } from 'immutable';
import { quoted } from '../objects/errors.js';
import type { ObjectId } from '../objects/ids.js';
import type { SessionSets } from '../objects/sets.js';
import type { Step } from '../objects/step.js';
import { defined } from '../values/defined.js';
import { SessionError } from './errors.js';

/**
 * The sets of a running session [§3.1] with membership in constant time. A change shares all but a few nodes with the value before it,
 * so that a step costs the same in a session of ten thousand objects as in one of ten.
 */
export interface LiveSets {
  readonly index: OrderedSet<ObjectId>;
  readonly active: OrderedSet<ObjectId>;
  readonly pinned: OrderedSet<ObjectId>;
  /** Those of the index that are tool calls. */
  readonly calls: UnorderedSet<ObjectId>;
  /** Tool results that are active and not pinned: what auto-collapse may take [§4.3]. */
  readonly loose: OrderedSet<ObjectId>;
}

/** The sets of a session before its first step. */
export const NO_LIVE_SETS: LiveSets = {
  index: OrderedSet(),
  active: OrderedSet(),
  pinned: OrderedSet(),
  calls: UnorderedSet(),
  loose: OrderedSet(),
};

/** Sets that take many steps one after another without a copy for each; `settledSets` ends that. The sets that they were made of stay as they are. */
export function draftSets({ index, active, pinned, calls, loose }: LiveSets): LiveSets {
  const draft = { index: index.asMutable(), active: active.asMutable(), pinned: pinned.asMutable() };
  return { ...draft, calls: calls.asMutable(), loose: loose.asMutable() };
}

/** Sets that no step changes any more. */
export function settledSets({ index, active, pinned, calls, loose }: LiveSets): LiveSets {
  const settled = { index: index.asImmutable(), active: active.asImmutable(), pinned: pinned.asImmutable() };
  return { ...settled, calls: calls.asImmutable(), loose: loose.asImmutable() };
}

type Ids = readonly ObjectId[] | undefined;

function changed(set: OrderedSet<ObjectId>, remove: Ids, add: Ids): OrderedSet<ObjectId> {
  const none = (remove?.length ?? 0) + (add?.length ?? 0) === 0;
  if (none) return set;
  return set.withMutations((draft) => {
    for (const id of remove ?? []) draft.delete(id);
    for (const id of add ?? []) draft.add(id);
  });
}

function requireIndexed(index: OrderedSet<ObjectId>, ids: Ids): void {
  for (const id of ids ?? []) {
    if (!index.has(id)) {
      throw new SessionError('unknown-object', `${quoted(id)} would become active or pinned without being in the session index`);
    }
  }
}

/**
 * The sets after a step; removals before additions.
 * @throws {SessionError} `unknown-object` (decision D1)
 */
export function setsAfter(sets: LiveSets, { changes, call }: Step): LiveSets {
  const index = changed(sets.index, undefined, changes.index);
  requireIndexed(index, changes.activate);
  requireIndexed(index, changes.pin);
  const active = changed(sets.active, changes.deactivate, changes.activate);
  const pinned = changed(sets.pinned, changes.unpin, changes.pin);
  const calls = call === undefined ? sets.calls : sets.calls.add(call.id);
  const touched = [changes.deactivate, changes.unpin, changes.activate, changes.pin].flatMap((ids) => ids ?? []);
  const loose = sets.loose.withMutations((draft) => {
    for (const id of touched) {
      if (calls.has(id) && active.has(id) && !pinned.has(id)) draft.add(id);
      else draft.delete(id);
    }
  });
  return { index, active, pinned, calls, loose };
}

/** The sets as plain arrays, in insertion order [§3.1]. */
export function plainSets({ index, active, pinned }: LiveSets): SessionSets {
  return { index: index.toArray(), active: active.toArray(), pinned: pinned.toArray() };
}

/** For each turn the tool results that became fresh in it, the newest last; one entry for each result and turn. */
export type ResultWindow = List<OrderedSet<ObjectId>>;

/** The window of a session without tool results. */
export const NO_RESULTS: ResultWindow = List();

/** The window after some results became fresh in a turn, in the given order. A result stays listed in the earlier turns that it was fresh in. */
export function windowAfter(window: ResultWindow, turn: number, fresh: readonly ObjectId[]): ResultWindow {
  if (fresh.length === 0) return window;
  const results = (window.get(turn - 1) ?? OrderedSet<ObjectId>()).withMutations((draft) => {
    for (const id of fresh) draft.delete(id).add(id);
  });
  return window.set(turn - 1, results);
}

/** The newest results of a turn, newest first; costs what it returns, not what the turn holds. */
export function newestResults(window: ResultWindow, turn: number, count: number): readonly ObjectId[] {
  const results = window.get(turn - 1);
  return results === undefined ? [] : results.toSeq().reverse().take(count).toArray();
}

/** What one step brought into the chat: what a harness's own history is compared with (decision F1). */
export type ChatMark = Pick<Step, 'seq' | 'turn' | 'message' | 'native' | 'event'> & { readonly call?: ObjectId };

/** The marks of a session before its first message. */
export const NO_MARKS: List<ChatMark> = List();

/** The marks that steps leave; one that only changes sets leaves none. */
export function marksOfSteps(steps: readonly Step[]): readonly ChatMark[] {
  return steps.flatMap(({ seq, turn, message, native, event, call }) => {
    if (message === undefined && call === undefined && event === undefined) return [];
    return [{ seq, turn, ...defined({ message, native, event }), ...(call === undefined ? {} : { call: call.id }) }];
  });
}
