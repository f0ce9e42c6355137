import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';

/** A text of a request: an unchanged item of the conversation, or a replacement of items. */
export interface RequestPart {
  readonly text: string;
  /** The item; undefined for a text of the policy's own. */
  readonly item?: TimelineItem;
}

/** A policy's request for one model call. */
export interface PolicyRequest {
  readonly parts: readonly RequestPart[];
  /** Bytes that the policy wrote to disk since the previous call. */
  readonly stored?: number;
  /** True if thinking that was sent before was omitted to fit the request. */
  readonly pressed?: boolean;
  /** A further model call that made a summary for this request: its prompt and its answer. */
  readonly summarised?: { readonly read: number; readonly written: number };
}

/** How a model can fetch a dropped text. `activate`: the policy gives it back by its name. */
export type Reach = 'activate' | 'none';

/**
 * How far a policy's requests are those of the named program. `exact`: its published code or rule.
 * `bounded`: a part needs a model or is unpublished, and the policy's description names that part.
 */
export type Fidelity = 'exact' | 'bounded';

/** Facts about a policy, without its requests. */
export interface PolicyFacts {
  /** The name with its parameters, as tables show it. */
  readonly name: string;
  /** The settings of one family compete. The first one of a configuration is the published one. */
  readonly family: string;
  /** Whether it is a baseline, a peer's policy, ours, or a bound that no policy can reach. */
  readonly kind: 'baseline' | 'peer' | 'own' | 'bound';
  /** The program or paper that it follows. */
  readonly source: string;
  readonly fidelity: Fidelity;
  /** A sentence that describes it. */
  readonly about: string;
  readonly reach: Reach;
  /** Characters that it adds to every system prompt and tool list: its guide and its own tools. */
  readonly guide: number;
}

/**
 * Decides what each model call of a session receives. Pure: equal timelines give equal requests.
 */
export interface ContextPolicy extends PolicyFacts {
  /** Present if the requests are those that the recorded model received. */
  readonly asRecorded?: true;
  /** Present if the provider itself edits the context, which leaves reasoning valid. */
  readonly keepsReasoning?: true;
  /** Returns why a session does not count for the policy; undefined if it does. */
  readonly unsupported?: (timeline: Timeline) => string | undefined | Promise<string | undefined>;
  /** Returns one request for each call of the timeline, in order. */
  requests(timeline: Timeline): AsyncIterable<PolicyRequest> | Iterable<PolicyRequest>;
}

const WHOLE = new WeakMap<TimelineItem, RequestPart>();
/** The parts of each conversation, which grows in place. */
const WHOLES = new WeakMap<readonly TimelineItem[], RequestPart[]>();

/**
 * Returns an unchanged item as a part. The same item gives the same object, so that requests
 * compare quickly.
 */
export function wholePart(item: TimelineItem): RequestPart {
  const known = WHOLE.get(item);
  if (known !== undefined) return known;
  const part = { text: item.text, item };
  WHOLE.set(item, part);
  return part;
}

/** Returns the unchanged items of a call's request. */
export function wholeParts({ items, visible }: ModelCall): readonly RequestPart[] {
  const known = WHOLES.get(items) ?? [];
  WHOLES.set(items, known);
  for (let at = known.length; at < visible; at += 1) {
    const item = items[at];
    if (item !== undefined) known.push(wholePart(item));
  }
  return known.slice(0, visible);
}

/** Returns the items of a call's request. */
export const itemsOf = ({ items, visible }: ModelCall): readonly TimelineItem[] => items.slice(0, visible);

/** Takes the place of a removed item. */
const GONE: RequestPart = { text: '' };

/** A conversation in which some items are permanently removed or replaced by a short text. */
export class MaskedConversation {
  readonly #masked = new Map<TimelineItem, RequestPart>();
  /** The parts of the newest call, which a rule and its request both ask for. */
  #last: { readonly call: ModelCall; readonly parts: readonly RequestPart[] } | undefined;

  isMasked(item: TimelineItem): boolean {
    return this.#masked.has(item);
  }

  /** Replaces an item by a text; without one, removes it. */
  mask(item: TimelineItem, text: string | undefined): void {
    this.#masked.set(item, text === undefined ? GONE : { text });
    this.#last = undefined;
  }

  parts(call: ModelCall): readonly RequestPart[] {
    if (this.#last?.call === call) return this.#last.parts;
    const parts: RequestPart[] = [];
    for (const part of wholeParts(call)) {
      const instead = part.item === undefined ? undefined : this.#masked.get(part.item);
      if (instead === undefined) parts.push(part);
      else if (instead !== GONE) parts.push(instead);
    }
    this.#last = { call, parts };
    return parts;
  }
}

/** Returns the characters of a request. */
export function charsOf(parts: readonly RequestPart[]): number {
  let chars = 0;
  for (const { text } of parts) chars += text.length;
  return chars;
}
