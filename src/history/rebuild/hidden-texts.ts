import type { SessionId } from '../../objects/ids.js';
import type { Timeline } from './timeline.js';

/** The texts and objects that a session's redaction rules hide. */
export interface HiddenTexts {
  /** The number of rules. */
  readonly rules: number;
  /**
   * The number of rules that hide text which the import had not already masked. Unresolved rules
   * count too.
   */
  readonly inForce: number;
  /** The number of rules whose target does not exist. */
  readonly unresolved: number;
  /** Texts to hide wherever they occur. */
  readonly texts: readonly string[];
  /** Texts to hide only where they occur as whole words. */
  readonly words: readonly string[];
  /** The ids of calls and files that are hidden entirely. */
  readonly objects: ReadonlySet<string>;
}

/** Finds the texts that a session's redaction rules hide; `NOTHING_HIDDEN` without rules. */
export type FindHiddenTexts = (timeline: Timeline, session: SessionId) => Promise<HiddenTexts>;

/** The result for a session without rules. */
export const NOTHING_HIDDEN: HiddenTexts = {
  rules: 0,
  inForce: 0,
  unresolved: 0,
  texts: [],
  words: [],
  objects: new Set(),
};
