import type { CanonicalPath } from '../../objects/ids.js';
import type { JsonObject } from '../../values/json-object.js';
import type { RecordingFormat } from '../recordings/neutral-session.js';

/** What stands in a request of a model call. `harness`: what the program put in; `summary` of a compaction is no item, since only one policy has it. */
export type ItemKind = 'system' | 'user' | 'harness' | 'text' | 'thinking' | 'call' | 'result';

/** What a result shows of files, and what its call did to them. */
export interface FileFacts {
  /** Files whose text it shows, all of it or lines of it. */
  readonly shows: readonly CanonicalPath[];
  /** Files that were written, edited, moved or deleted. */
  readonly changes: readonly CanonicalPath[];
  /** The whole texts, behind the call, of files of both kinds, as far as the recording lets one know them. */
  readonly texts: ReadonlyMap<CanonicalPath, string>;
}

/** One item of a conversation: what a provider's request lists one behind the other. */
export interface TimelineItem {
  /** Its number in the session, from 0. */
  readonly index: number;
  /** Where it stands in the conversation that it was said in. */
  readonly position: number;
  readonly kind: ItemKind;
  /** What the model sees or said; of a call its tool and its arguments as JSON. */
  readonly text: string;
  /** The model call that it is a part of the answer of; undefined for what came for the model. */
  readonly answer: number | undefined;
  /** Arguments of a call. */
  readonly args: JsonObject | undefined;
  /** Of a call the texts of its arguments, each as it would stand in a file. */
  readonly argumentTexts: readonly string[];
  /** The turn that it belongs to, from 1; 0 before the first message of a user. */
  readonly turn: number;
  /** The recording's id of the call, of calls and results. */
  readonly callId: string | undefined;
  readonly tool: string | undefined;
  readonly isError: boolean;
  readonly files: FileFacts;
  /** From which model call on a file that it shows was another one; undefined as long as it is what stands there. */
  staleFrom: number | undefined;
}

/** Tokens of a request as the provider counted them. */
export interface RecordedTokens {
  readonly prompt: number;
  readonly cacheRead: number | undefined;
}

/** One call of the model. Its request is `items` up to `visible`. */
export interface ModelCall {
  /** Its number in the session, from 0. */
  readonly index: number;
  readonly turn: number;
  /** Whether a message of the user came since the call before. */
  readonly opensTurn: boolean;
  /** The conversation that it belongs to; a rewind begins another one. */
  readonly items: readonly TimelineItem[];
  readonly visible: number;
  /** What the model answered, in its order: thinking, text, calls. */
  readonly outputs: readonly TimelineItem[];
  /** When its newest input came, milliseconds since 1970; undefined where the recording has no clock. */
  readonly at: number | undefined;
  readonly model: string | undefined;
  readonly recorded: RecordedTokens | undefined;
}

/** A compaction by the recorded program, before the model call `before`. */
export interface RecordedCompaction {
  readonly before: number;
  readonly summary: string;
  /** The items in front of it that stayed. */
  readonly kept: readonly TimelineItem[];
  /** How many items of the conversation stood in front of it. */
  readonly visible: number;
}

/** The model calls of one recorded session with the items of their requests. */
export interface Timeline {
  /** The same for the same session of the same recording, and for no other one. */
  readonly key: string;
  readonly format: RecordingFormat;
  /** The recording's id of the session. */
  readonly nativeId: string;
  readonly model: string | undefined;
  readonly cwd: string | undefined;
  readonly items: readonly TimelineItem[];
  readonly calls: readonly ModelCall[];
  readonly compactions: readonly RecordedCompaction[];
  /** Rewinds of which the recording does not tell how far they went: the conversation goes on there. */
  readonly unknownRewinds: number;
  /** Calls that a fork took over from the session that it began with: they are in that one's recording too. */
  readonly copiedCalls: number;
}

/** Whether an item is part of the request of a call. */
export function isVisible(call: ModelCall, item: TimelineItem): boolean {
  return item.position < call.visible && call.items[item.position] === item;
}
