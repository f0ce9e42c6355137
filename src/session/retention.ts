import type { ObjectId } from '../objects/ids.js';
import { CHARS_PER_TOKEN } from '../values/token-estimate.js';

/** What kind of text an object has: the present text of a file, or what a call of a family of tools answered. */
export type RetainedKind = 'file' | 'read' | 'command' | 'search' | 'edit' | 'other';

/** An object whose text could stand in the base of the next epoch. Calls are the model's; the newest is 1 ago. */
export interface RetentionCandidate {
  readonly id: ObjectId;
  readonly kind: RetainedKind;
  /** UTF-16 units of the text as it would be rendered. */
  readonly chars: number;
  /** How many calls ago a request first showed this text: a result since it came, a file since it was last read or written whole. */
  readonly shown: number;
  /** How many calls ago the model's own words last quoted a line of it, or a call edited it or read a part of it; undefined for never. */
  readonly used: number | undefined;
  /** Whether another candidate that was shown later has all of its lines: a file that was read again. */
  readonly isRepeated: boolean;
  /** Pinned, or activated by a verb and not deactivated since: stays, whatever it costs. */
  readonly isHeld: boolean;
}

/** How long texts stay. */
export interface RetentionSettings {
  /** Calls that a text of 1,000 characters stays after it was shown, in a request of `request` tokens. */
  readonly shown: number;
  /** Calls that a text stays after it was used, in a request of `request` tokens. */
  readonly used: number;
  /** Tokens of the request for which the lifetimes hold: in a larger one texts stay for fewer calls, in a smaller one for more, so that each pays about the same. */
  readonly request: number;
  /** How many times longer texts stay at most in a small request. */
  readonly mostStretch: number;
  /** Larger texts are needed more often: the lifetime grows with this power of the size. */
  readonly sizePower: number;
  /** The share of the lifetime that texts of a kind have. */
  readonly kinds: Readonly<Record<RetainedKind, number>>;
  /** The most tokens that stay, and the share of the request that may stay beyond them. */
  readonly most: number;
  readonly mostShare: number;
}

/** Chosen by cross-validation over recorded sessions (18, with 2,361 model calls). */
export const RETENTION: RetentionSettings = {
  shown: 22,
  used: 11,
  request: 60_000,
  mostStretch: 3,
  sizePower: 0.15,
  kinds: { file: 1, read: 1, command: 1, other: 1, search: 0.4, edit: 0.4 },
  most: 40_000,
  mostShare: 0.2,
};

/** A text shorter than this counts as this long. */
const LEAST_CHARS = 200;

/** How many calls a text has left; below 0 it goes. */
function callsLeft({ kind, chars, shown, used }: RetentionCandidate, request: number, settings: RetentionSettings): number {
  const stretch = Math.min(settings.mostStretch, settings.request / Math.max(1, request));
  const size = (Math.max(LEAST_CHARS, chars) / 1_000) ** settings.sizePower;
  const bySight = settings.shown * stretch * size * settings.kinds[kind] - shown;
  return used === undefined ? bySight : Math.max(bySight, settings.used * stretch - used);
}

/**
 * Which texts stay in full when a new epoch begins (retention by use): what is held, and what was shown or used so recently that its lifetime has not run out, the longest remaining
 * lifetime first, as far as the tokens go. What a later text shows again goes. `request` is what the next request would have if the epoch went on, in tokens.
 * A pure function: the same candidates give the same ids, in their order.
 */
export function retained(
  candidates: readonly RetentionCandidate[],
  request: number,
  settings: RetentionSettings = RETENTION,
): readonly ObjectId[] {
  const kept = new Set(candidates.filter(({ isHeld }) => isHeld));
  let chars = [...kept].reduce((sum, one) => sum + one.chars, 0);
  const most = (settings.most + settings.mostShare * request) * CHARS_PER_TOKEN;
  const living = candidates
    .map((candidate, place) => ({ candidate, place, left: callsLeft(candidate, request, settings) }))
    .filter(({ candidate, left }) => !candidate.isHeld && !candidate.isRepeated && left >= 0)
    .sort((a, b) => b.left - a.left || b.place - a.place);
  for (const { candidate } of living) {
    if (chars + candidate.chars > most) continue;
    kept.add(candidate);
    chars += candidate.chars;
  }
  return candidates.filter((candidate) => kept.has(candidate)).map(({ id }) => id);
}
