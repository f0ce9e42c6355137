import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';

/** A text of a request: an item of the conversation as it was, or what stands in the place of items. */
export interface RequestPart {
  readonly text: string;
  /** The item that it is; undefined for a text of the policy's own. */
  readonly item?: TimelineItem;
}

/** What a policy sends with one call of the model. */
export interface PolicyRequest {
  readonly parts: readonly RequestPart[];
  /** What the policy's own work left on disk since the call before, bytes. */
  readonly stored?: number;
  /** Thinking that was sent before was left out because the request would not have fitted otherwise. */
  readonly pressed?: boolean;
}

/** What a model can do about a text that it misses. `activate`: one call with an id that its request names. */
export type Reach = 'activate' | 'none';

/** Decides what each model call of a session is sent. Pure: the same timeline gives the same requests. */
export interface ContextPolicy {
  /** With its parameters, as tables show it. */
  readonly name: string;
  /** Whose it is: a peer's, ours, or a bound that no policy can know. */
  readonly family: 'raw' | 'peer' | 'own' | 'bound';
  /** What it does, in a sentence. */
  readonly about: string;
  readonly reach: Reach;
  /** Present where the requests are those that the recorded model was sent. */
  readonly asRecorded?: true;
  /** Why a session says nothing about it; undefined where it does. */
  readonly unsupported?: (timeline: Timeline) => string | undefined;
  /** One request for each call of the timeline, in its order. */
  requests(timeline: Timeline): AsyncIterable<PolicyRequest> | Iterable<PolicyRequest>;
}

const WHOLE = new WeakMap<TimelineItem, RequestPart>();

/** An item as it was; always the same part, so that requests compare quickly. */
export function wholePart(item: TimelineItem): RequestPart {
  const known = WHOLE.get(item);
  if (known !== undefined) return known;
  const part = { text: item.text, item };
  WHOLE.set(item, part);
  return part;
}

/** The items of a call's request. */
export const itemsOf = ({ items, visible }: ModelCall): readonly TimelineItem[] => items.slice(0, visible);

/** A conversation in which some items have given their place to a short text, or to nothing, and stay so. */
export class MaskedConversation {
  readonly #masked = new Map<TimelineItem, RequestPart | undefined>();

  isMasked(item: TimelineItem): boolean {
    return this.#masked.has(item);
  }

  /** Puts a text in the place of an item; without one it is left out. */
  mask(item: TimelineItem, text: string | undefined): void {
    this.#masked.set(item, text === undefined ? undefined : { text });
  }

  parts(call: ModelCall): readonly RequestPart[] {
    return itemsOf(call).flatMap((item) => {
      if (!this.#masked.has(item)) return [wholePart(item)];
      const instead = this.#masked.get(item);
      return instead === undefined ? [] : [instead];
    });
  }
}

/** Characters of a request. */
export const charsOf = (parts: readonly RequestPart[]): number => parts.reduce((sum, { text }) => sum + text.length, 0);
