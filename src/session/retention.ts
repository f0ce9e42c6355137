import type { ObjectId } from '../objects/ids.js';
import { CHARS_PER_TOKEN } from '../values/token-estimate.js';

/** The kind of an object's text: a file's current text, or the result of a tool family. */
export type RetainedKind = 'file' | 'read' | 'command' | 'search' | 'edit' | 'other';

/**
 * A candidate for the base of the next epoch. Its ages are counted in model calls, including the
 * newest.
 */
export interface RetentionCandidate {
  readonly id: ObjectId;
  readonly kind: RetainedKind;
  /** UTF-16 units of the rendered text. */
  readonly chars: number;
  /**
   * Number of calls since a request first showed this text. For a file, since its last whole read
   * or write.
   */
  readonly shown: number;
  /**
   * Number of calls since the model last quoted a line of it, or since a call edited it or read a
   * part of it. Undefined for never.
   */
  readonly used: number | undefined;
  /**
   * Whether a candidate that was shown later has all lines of this text, such as a file read again.
   */
  readonly isRepeated: boolean;
  /**
   * Whether it is pinned, or activated by a verb and not deactivated since. Such a text stays at
   * any cost.
   */
  readonly isHeld: boolean;
}

/** How long texts stay. */
export interface RetentionSettings {
  /**
   * Number of calls that a text of 1,000 characters stays after it was shown, in a request of
   * `request` tokens.
   */
  readonly shown: number;
  /** Number of calls that a text stays after a use, in a request of `request` tokens. */
  readonly used: number;
  /**
   * Tokens of the request for which the lifetimes hold. Texts stay for fewer calls in a larger
   * request and for more in a smaller one, so that each costs about the same.
   */
  readonly request: number;
  /** Maximum factor by which a small request extends lifetimes. */
  readonly mostStretch: number;
  /**
   * Exponent of the size in the lifetime. Larger texts stay longer, because models need them more
   * often.
   */
  readonly sizePower: number;
  /** Factor of the lifetime per kind. */
  readonly kinds: Readonly<Record<RetainedKind, number>>;
  /** Maximum tokens of the texts that stay: `most`, plus `mostShare` of the request. */
  readonly most: number;
  readonly mostShare: number;
  /** Whether the text that an edit wrote stays with its result. */
  readonly inputs: boolean;
}

/**
 * The default, chosen by cross-validation on 18 sessions with 2,361 model calls (decision 0031).
 * Edits stay long, because models repeat their own text more often than the text that they read.
 */
export const RETENTION: RetentionSettings = {
  shown: 22,
  used: 11,
  request: 60_000,
  mostStretch: 3,
  sizePower: 0.15,
  kinds: { file: 1, read: 1, command: 1, other: 1, search: 0.4, edit: 10 },
  most: 40_000,
  mostShare: 0.4,
  inputs: true,
};

/** Shorter texts count as this long. */
const LEAST_CHARS = 200;

/** Returns the number of calls that a text still stays. Below 0, it leaves. */
function callsLeft(
  { kind, chars, shown, used }: RetentionCandidate,
  request: number,
  settings: RetentionSettings,
): number {
  const stretch = Math.min(settings.mostStretch, settings.request / Math.max(1, request));
  const size = (Math.max(LEAST_CHARS, chars) / 1_000) ** settings.sizePower;
  const bySight = settings.shown * stretch * size * settings.kinds[kind] - shown;
  return used === undefined ? bySight : Math.max(bySight, settings.used * stretch - used);
}

/**
 * Returns the texts that stay whole when an epoch begins (retention by use). Held texts stay. Of
 * the others, those with lifetime left stay, the longest first, within the token limit. A text that
 * a later one repeats leaves. `request` is the token count of the next request if the epoch
 * continued. Pure: the same candidates give the same ids in the same order.
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
