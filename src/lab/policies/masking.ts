import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, MaskedConversation, type PolicyFacts, type PolicyRequest } from './policy.js';

/**
 * Two rules of our own policy that the laboratory can also apply to another policy. With
 * `arguments`, dropping a result also drops the call's arguments. With `borders`, results are
 * dropped only at the first call after a user message.
 */
export interface Rights {
  readonly arguments: boolean;
  readonly borders: boolean;
}

/** An item that is dropped, and the text that replaces it, if any. */
export interface Masking {
  readonly item: TimelineItem;
  readonly text: string | undefined;
}

/** A rule's decision before a model call. */
export interface Decision {
  /** The items to drop. */
  readonly leave: readonly Masking[];
  /** Text that replaces the dropped beginning, such as a summary. */
  readonly summary?: string;
  readonly summarised?: PolicyRequest['summarised'];
}

/** Decides before each call of one session which items are dropped. Dropped items never return. */
export type MaskingRule = (
  call: ModelCall,
  conversation: MaskedConversation,
) => Decision | undefined | Promise<Decision | undefined>;

/** A policy of another program that drops items of the conversation. */
export interface MaskingPolicy
  extends Omit<PolicyFacts, 'kind' | 'guide' | 'reach'>,
    Partial<Pick<ContextPolicy, 'guide' | 'reach' | 'keepsReasoning' | 'unsupported'>> {
  readonly rights: Rights;
  /** Returns the rule for a session. */
  readonly rule: (timeline: Timeline) => MaskingRule | Promise<MaskingRule>;
}

/** Number of characters of a call's dropped arguments that stay visible. */
const SHOWN_ARGUMENTS = 40;

/** Returns the line that replaces a call whose arguments are dropped. */
export function callLine({ tool = '', argumentTexts }: TimelineItem): string {
  const [first = ''] = argumentTexts;
  return `[${tool} ${first.trim().split('\n')[0]?.slice(0, SHOWN_ARGUMENTS) ?? ''}]`;
}

/** Returns the results of a request that are still whole, oldest first. */
export const wholeResults = (call: ModelCall, conversation: MaskedConversation): readonly TimelineItem[] =>
  itemsOf(call).filter((item) => item.kind === 'result' && !conversation.isMasked(item));

function rightsName({ arguments: args, borders }: Rights): string {
  const named = [...(args ? ['arguments'] : []), ...(borders ? ['borders'] : [])];
  return named.length === 0 ? '' : ` + ${named.join(', ')}`;
}

/** Returns the policy that applies a rule. The policy's name ends in the names of its `rights`. */
export function maskingPolicy({ rule, rights, ...facts }: MaskingPolicy): ContextPolicy {
  return {
    guide: 0,
    reach: 'none',
    ...facts,
    name: `${facts.name}${rightsName(rights)}`,
    kind: 'peer',
    async *requests(timeline) {
      const { calls } = timeline;
      const conversation = new MaskedConversation();
      const decide = await rule(timeline);
      let summary: { readonly text: string } | undefined;
      for (const call of calls) {
        const decision = rights.borders && !call.opensTurn ? undefined : await decide(call, conversation);
        const gone = new Set<string | undefined>();
        for (const { item, text } of decision?.leave ?? []) {
          conversation.mask(item, text);
          if (item.kind === 'result') gone.add(item.callId);
        }
        if (rights.arguments && gone.size > 0)
          for (const item of itemsOf(call))
            if (item.kind === 'call' && gone.has(item.callId) && !conversation.isMasked(item))
              conversation.mask(item, callLine(item));
        if (decision?.summary !== undefined) summary = { text: decision.summary };
        const parts = conversation.parts(call);
        const first = parts.findIndex(({ item }) => item?.kind !== 'system');
        const at = first < 0 ? parts.length : first;
        yield {
          parts: summary === undefined ? parts : [...parts.slice(0, at), summary, ...parts.slice(at)],
          ...(decision?.summarised === undefined ? {} : { summarised: decision.summarised }),
        };
      }
    },
  };
}
