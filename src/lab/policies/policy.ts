import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';

/** A part of a request: an unchanged item of the conversation, or a text that replaces items. */
export interface RequestPart {
  readonly text: string;
  /** The unchanged item; undefined for a text that the policy made. */
  readonly item?: TimelineItem;
}

/** A policy's request for one model call. */
export interface PolicyRequest {
  readonly parts: readonly RequestPart[];
  /** Bytes that the policy wrote to disk since the previous call. */
  readonly stored?: number;
  /** True if earlier thinking was omitted to fit the request. */
  readonly pressed?: boolean;
  /**
   * The sizes of prompt and answer of an additional model call that wrote a summary for this
   * request.
   */
  readonly summarised?: { readonly read: number; readonly written: number };
}

/** How a model can get a dropped text back. `activate`: the policy returns the text by its name. */
export type Reach = 'activate' | 'none';

/**
 * How exactly a policy follows the named program. `exact`: it uses the published code or rule.
 * `bounded`: one part needs a model or is unpublished, and `about` names that part.
 */
export type Fidelity = 'exact' | 'bounded';

/** Facts about a policy, apart from its requests. */
export interface PolicyFacts {
  /** The name with its parameters, as tables show it. */
  readonly name: string;
  /**
   * The name shared by all settings of one policy. In a configuration, the published setting of a
   * family comes first.
   */
  readonly family: string;
  /** A baseline, another program's policy, our own, or a bound that no real policy can reach. */
  readonly kind: 'baseline' | 'peer' | 'own' | 'bound';
  /** The program or paper whose rule it follows. */
  readonly source: string;
  readonly fidelity: Fidelity;
  /** A sentence that describes it. */
  readonly about: string;
  readonly reach: Reach;
  /**
   * Characters that the policy adds to every system prompt and tool list: its guide and its own
   * tools.
   */
  readonly guide: number;
}

/**
 * A context policy, which decides the content of each request of a session. Equal timelines must
 * give equal requests.
 */
export interface ContextPolicy extends PolicyFacts {
  /** Set if the requests are the same as the recorded ones. */
  readonly asRecorded?: true;
  /** Set if the provider itself edits the context, so that reasoning stays valid. */
  readonly keepsReasoning?: true;
  /** Returns why the policy cannot be applied to a session; undefined if it can. */
  readonly unsupported?: (timeline: Timeline) => string | undefined | Promise<string | undefined>;
  /** Returns one request for each call of the timeline, in order. */
  requests(timeline: Timeline): AsyncIterable<PolicyRequest> | Iterable<PolicyRequest>;
}

const WHOLE = new WeakMap<TimelineItem, RequestPart>();
/** The parts for the items of each conversation. Each list grows with its conversation. */
const WHOLES = new WeakMap<readonly TimelineItem[], RequestPart[]>();

/**
 * Returns an unchanged item as a part. An item always gives the same object, so that requests can
 * be compared by identity.
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

/** The placeholder for an item that is removed without replacement. */
const GONE: RequestPart = { text: '' };

/** A conversation in which some items are permanently removed or replaced by a short text. */
export class MaskedConversation {
  readonly #masked = new Map<TimelineItem, RequestPart>();
  /** Cache of the newest call's parts, which a rule and its request both need. */
  #last: { readonly call: ModelCall; readonly parts: readonly RequestPart[] } | undefined;

  isMasked(item: TimelineItem): boolean {
    return this.#masked.has(item);
  }

  /** Replaces an item by a text, or removes it if no text is given. */
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

/** Returns the number of characters of a request. */
export function charsOf(parts: readonly RequestPart[]): number {
  let chars = 0;
  for (const { text } of parts) chars += text.length;
  return chars;
}
