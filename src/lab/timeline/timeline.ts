import type { CanonicalPath } from '../../objects/ids.js';
import type { JsonObject } from '../../values/json-object.js';
import type { RecordingFormat } from '../recordings/neutral-session.js';

/**
 * The kinds of items in a request. `harness` is text that the recorded program inserted. A
 * compaction's summary is not an item, because only the requests of the policy `asSent` have it.
 */
export type ItemKind = 'system' | 'user' | 'harness' | 'text' | 'thinking' | 'call' | 'result';

/** The files that a result shows or its call changes. */
export interface FileFacts {
  /** Files whose text the result shows, whole or in part. */
  readonly shows: readonly CanonicalPath[];
  /** Files that were written, edited, moved or deleted. */
  readonly changes: readonly CanonicalPath[];
  /**
   * The whole texts after the call of the files in `shows` and `changes`, if the recording shows
   * them.
   */
  readonly texts: ReadonlyMap<CanonicalPath, string>;
}

/** A message, call, result or thinking in a conversation. A request is a list of items. */
export interface TimelineItem {
  /** The item's number in the session, from 0. */
  readonly index: number;
  /** The item's position in its conversation. */
  readonly position: number;
  readonly kind: ItemKind;
  /** The text that the model reads or writes. For a call: its tool, and its arguments as JSON. */
  readonly text: string;
  /** The number of the model call whose answer includes the item; undefined for input. */
  readonly answer: number | undefined;
  /** The arguments, if the item is a call. */
  readonly args: JsonObject | undefined;
  /** The texts in a call's arguments, without JSON escapes, as they would appear in a file. */
  readonly argumentTexts: readonly string[];
  /** The number of its turn, from 1; 0 before the first user message. */
  readonly turn: number;
  /** The recording's id of the call, for calls and results. */
  readonly callId: string | undefined;
  readonly tool: string | undefined;
  readonly isError: boolean;
  readonly files: FileFacts;
  /**
   * The first model call after a change of a file that the item shows. Undefined while the shown
   * text is current.
   */
  staleFrom: number | undefined;
}

/** The tokens of a model call, as the provider counted them. */
export interface RecordedTokens {
  readonly prompt: number;
  readonly cacheRead: number | undefined;
  readonly cacheWrite: number | undefined;
  /** Tokens of the answer, including hidden reasoning. */
  readonly output: number | undefined;
}

/** A model call. Its request is the first `visible` items of `items`. */
export interface ModelCall {
  /** The call's number in the session, from 0. */
  readonly index: number;
  readonly turn: number;
  /** Whether a user message arrived since the previous call. */
  readonly opensTurn: boolean;
  /** The call's conversation. A rewind starts a new conversation. */
  readonly items: readonly TimelineItem[];
  readonly visible: number;
  /** The model's answer in order: thinking, text and calls. */
  readonly outputs: readonly TimelineItem[];
  /**
   * The time of the newest item of its request, in milliseconds since 1970. Undefined if the
   * recording has no times.
   */
  readonly at: number | undefined;
  readonly model: string | undefined;
  readonly recorded: RecordedTokens | undefined;
}

/** A compaction that the recorded program made before the model call `before`. */
export interface RecordedCompaction {
  readonly before: number;
  readonly summary: string;
  /** The items that the compaction kept. */
  readonly kept: readonly TimelineItem[];
  /** The number of items in the conversation at the time of the compaction. */
  readonly visible: number;
}

/** The model calls of a recorded session with the items of their requests. */
export interface Timeline {
  /** Identifies a session of a recording. It is equal in every run. */
  readonly key: string;
  readonly format: RecordingFormat;
  /** The recording's id of the session. */
  readonly nativeId: string;
  readonly model: string | undefined;
  readonly cwd: string | undefined;
  readonly items: readonly TimelineItem[];
  readonly calls: readonly ModelCall[];
  readonly compactions: readonly RecordedCompaction[];
  /**
   * Number of rewinds for which the recording does not say how far they went. The timeline ignores
   * them.
   */
  readonly unknownRewinds: number;
  /**
   * Number of calls that a fork copied from its parent session. The parent's recording has them,
   * too.
   */
  readonly copiedCalls: number;
}

/** Returns true if an item is part of a call's request. */
export function isVisible(call: ModelCall, item: TimelineItem): boolean {
  return item.position < call.visible && call.items[item.position] === item;
}
