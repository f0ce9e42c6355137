import type { ModelCall, TimelineItem } from '../timeline/timeline.js';
import { maskingPolicy, type Rights, wholeResults } from './masking.js';
import type { ContextPolicy, MaskedConversation } from './policy.js';

/** Settings of LangChain's edit that clears tool uses. */
interface ClearToolUsesSettings {
  /** Results are cleared above this number of tokens by LangChain's estimate. */
  readonly over: number;
  /** Number of newest results that stay. */
  readonly keep: number;
  readonly rights: Rights;
}

interface ToolMessage {
  readonly tool_call_id?: string;
  readonly content: unknown;
  readonly response_metadata?: { readonly context_editing?: { readonly cleared?: boolean } };
}

type CountTokens = (messages: readonly object[]) => number;

/** LangChain's interface of a context edit, which changes the messages in place. */
interface Edit {
  readonly apply: (request: { readonly countTokens: CountTokens }) => unknown;
}

/**
 * The part of the npm package `langchain` that we use. It is an optional development dependency and
 * is loaded when the policy runs.
 */
interface LangChain {
  readonly AIMessage: new (fields: object) => object;
  readonly HumanMessage: new (fields: object) => object;
  readonly ToolMessage: new (fields: object) => ToolMessage;
  readonly ClearToolUsesEdit: new (settings: object) => Edit;
  readonly contextEditingMiddleware: (settings: object) => {
    readonly wrapModelCall: (request: object, handler: (request: object) => unknown) => unknown;
  };
}

const PACKAGE: string = 'langchain';
let loaded: Promise<LangChain | undefined> | undefined;

/** Loads the package once, and only on demand, because loading takes a second. */
function loadLangChain(): Promise<LangChain | undefined> {
  loaded ??= import(PACKAGE).then(
    (package_: LangChain) => package_,
    () => undefined,
  );
  return loaded;
}

/** LangChain's estimate of a token. */
const CHARS_PER_TOKEN = 4;

/**
 * Returns an edit that counts each message once. The middleware itself counts all messages again
 * for every call and every cleared result.
 */
function countingOnce(edit: Edit): Edit {
  const sizes = new WeakMap<object, number>();
  return {
    apply: ({ countTokens, ...request }) => {
      // countTokens rounds up. Counting each message four times keeps the fractions.
      const sizeOf = (message: object): number => {
        const known = sizes.get(message) ?? countTokens(new Array(CHARS_PER_TOKEN).fill(message));
        sizes.set(message, known);
        return known;
      };
      return edit.apply({
        ...request,
        countTokens: (messages) =>
          Math.ceil(messages.reduce<number>((sum, message) => sum + sizeOf(message), 0) / CHARS_PER_TOKEN),
      });
    },
  };
}

/** A conversation as LangChain's messages. An answer and its calls form one message. */
class LangChainMessages {
  readonly #langChain: LangChain;
  /** The middleware changes this list in place, as it would change an agent's list. */
  readonly list: object[] = [];
  #items: readonly TimelineItem[] = [];
  #seen = 0;

  constructor(langChain: LangChain) {
    this.#langChain = langChain;
  }

  /**
   * Appends the items since the previous call. After a rewind, rebuilds the list. Cleared results
   * stay cleared.
   */
  follow(call: ModelCall, conversation: MaskedConversation): void {
    if (call.items !== this.#items) {
      this.#items = call.items;
      this.#seen = 0;
      this.list.length = 0;
    }
    const fresh = call.items.slice(this.#seen, call.visible);
    this.#seen = call.visible;
    let answer: TimelineItem[] = [];
    const close = (): void => {
      if (answer.length > 0) this.list.push(this.#answer(answer));
      answer = [];
    };
    for (const item of fresh) {
      if (item.kind === 'text' || item.kind === 'thinking' || item.kind === 'call') answer.push(item);
      else {
        close();
        this.list.push(this.#input(item, conversation.isMasked(item)));
      }
    }
    close();
  }

  /** The ids of the calls whose results are cleared. */
  get cleared(): ReadonlySet<string> {
    const messages = this.list as readonly ToolMessage[];
    return new Set(
      messages.flatMap(({ tool_call_id: id, response_metadata: told }) =>
        told?.context_editing?.cleared === true && id !== undefined ? [id] : [],
      ),
    );
  }

  #answer(items: readonly TimelineItem[]): object {
    const calls = items.filter(({ kind }) => kind === 'call');
    return new this.#langChain.AIMessage({
      content: items.flatMap(({ kind, text }) => (kind === 'call' ? [] : [text])).join('\n'),
      tool_calls: calls.map(({ callId = '', tool = '', argumentTexts }) => ({
        id: callId,
        name: tool,
        args: { ...argumentTexts },
      })),
    });
  }

  #input({ kind, text, callId = '', tool = '' }: TimelineItem, isCleared: boolean): object {
    if (kind !== 'result') return new this.#langChain.HumanMessage({ content: text });
    const told = isCleared
      ? { response_metadata: { context_editing: { cleared: true, strategy: 'clear_tool_uses' } } }
      : {};
    return new this.#langChain.ToolMessage({
      content: isCleared ? PLACEHOLDER : text,
      tool_call_id: callId,
      name: tool,
      ...told,
    });
  }
}

const PLACEHOLDER = '[cleared]';

/**
 * Clears tool uses with LangChain's published middleware. If the package is not installed, the
 * policy has no figures.
 */
export function clearToolUses({ over, keep, rights }: ClearToolUsesSettings): ContextPolicy {
  return maskingPolicy({
    name: `clear tool uses, over ${over / 1_000}k, keep ${keep}`,
    family: 'clear tool uses',
    source: 'npm langchain, contextEditingMiddleware, called for real',
    fidelity: 'exact',
    about: `A request over ${over} tokens by LangChain's count loses all results but the newest ${keep}.`,
    rights,
    unsupported: async () =>
      (await loadLangChain()) === undefined ? 'the npm package langchain is not installed' : undefined,
    rule: async () => {
      const langChain = await loadLangChain();
      if (langChain === undefined) return () => undefined;
      const edit = new langChain.ClearToolUsesEdit({
        trigger: { tokens: over },
        keep: { messages: keep },
        placeholder: PLACEHOLDER,
      });
      const middleware = langChain.contextEditingMiddleware({
        edits: [countingOnce(edit)],
        tokenCountMethod: 'approx',
      });
      const messages = new LangChainMessages(langChain);
      return async (call, conversation) => {
        messages.follow(call, conversation);
        await middleware.wrapModelCall({ messages: messages.list, model: undefined }, () => undefined);
        const { cleared } = messages;
        return {
          leave: wholeResults(call, conversation)
            .filter(({ callId }) => cleared.has(callId ?? ''))
            .map((item) => ({ item, text: PLACEHOLDER })),
        };
      };
    },
  });
}
