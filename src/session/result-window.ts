import { List, OrderedSet } from 'immutable';
import type { ObjectId } from '../objects/ids.js';

/** A tool result that became fresh in a turn: by being made, or by an explicit activation (decision D4). */
export interface WindowEntry {
  readonly turn: number;
  readonly id: ObjectId;
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

/** Every entry, oldest turn first. */
export function windowEntries(window: ResultWindow): readonly WindowEntry[] {
  // Turns without results leave holes in the list.
  return window
    .toArray()
    .flatMap((results: OrderedSet<ObjectId> | undefined, i) => (results?.toArray() ?? []).map((id) => ({ turn: i + 1, id })));
}
