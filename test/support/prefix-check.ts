import { createHash, randomUUID } from 'node:crypto';
import { canonicalJson } from '../../src/objects/canonical-json.js';

/** A block of a message on the Anthropic wire. */
export interface WireBlock {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** A message on the Anthropic wire. */
export interface ThinkingMessage {
  readonly role: string;
  readonly content: string | readonly WireBlock[];
}

/** What a request of the Anthropic wire says that a thinking block is bound to. */
export interface ThinkingRequest {
  readonly system?: string | readonly WireBlock[];
  readonly tools?: readonly unknown[];
  readonly messages: readonly ThinkingMessage[];
}

/** What the check says of one request. */
export interface PrefixVerdict {
  /** Thinking blocks that the request returns. */
  readonly returned: number;
  /** Those of them whose signatures fit what stands before them now; after the first that does not, none does. */
  readonly valid: number;
  /** Where the first one stands that does not fit, and why; undefined where all fit. */
  readonly fault?: string;
}

/** One thing of a request in its order; a thinking block has its signature. */
interface Item {
  readonly text: string;
  readonly place: string;
  readonly signature?: string;
  readonly thinking?: string;
}

/** What a signature is bound to: everything before it but thoughts, and the thoughts before it. */
interface Binding {
  readonly before: string;
  readonly thoughts: readonly string[];
  readonly thinking: string;
}

const THOUGHTS: ReadonlySet<string> = new Set(['thinking', 'redacted_thinking']);

/** Without cache marks, which may move; members without a value are on no wire. */
function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => (key === 'cache_control' || one === undefined ? [] : [[key, unmarked(one)]])),
  );
}

const plain = (value: unknown): string => canonicalJson(unmarked(value) as Parameters<typeof canonicalJson>[0]);

/** A text alone is a list of one block. */
const blocksOf = (content: string | readonly WireBlock[] = []): readonly WireBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** Everything that a thinking block can stand behind. Messages in a row of one role are one message. */
function itemsOf({ system, tools = [], messages }: ThinkingRequest): readonly Item[] {
  const items: Item[] = [
    { text: plain(blocksOf(system)), place: 'system' },
    { text: plain(tools), place: 'tools' },
  ];
  let role: string | undefined;
  for (const [i, message] of messages.entries()) {
    if (message.role !== role) items.push({ text: message.role, place: `messages.${i}` });
    role = message.role;
    for (const [j, block] of blocksOf(message.content).entries()) {
      const thought = THOUGHTS.has(block.type)
        ? { signature: String(block.signature ?? block.data), thinking: String(block.thinking ?? '') }
        : {};
      items.push({ text: plain(block), place: `messages.${i}.content.${j}`, ...thought });
    }
  }
  return items;
}

/** A request in one text for comparing: a request that only continues another begins with the whole text of that one. */
export function wireText(request: ThinkingRequest): string {
  return itemsOf(request)
    .map(({ text }) => `${text}\n`)
    .join('');
}

/**
 * What a provider with bound thinking does: signs each thinking block over everything before it, and says of a request whether each block that it returns
 * still fits. Thinking may be left out from the beginning, from the end or altogether, for good; a hole, a change before it, and a block that comes back
 * do not fit. Cache marks, the order of keys and whether a text stands alone or in a list do not count.
 */
export class PrefixCheck {
  readonly #bindings = new Map<string, Binding>();

  /** Says which of the returned blocks fit. */
  examine(request: ThinkingRequest): PrefixVerdict {
    const hash = createHash('sha256');
    const thoughts: string[] = [];
    let fault: string | undefined;
    let valid = 0;
    for (const { text, place, signature, thinking } of itemsOf(request)) {
      if (signature === undefined) {
        hash.update(`${text}\n`);
        continue;
      }
      fault ??= this.#faultOf({ signature, thinking: thinking ?? '' }, hash.copy().digest('hex'), thoughts, place);
      if (fault === undefined) valid += 1;
      thoughts.push(signature);
    }
    return { returned: thoughts.length, valid, ...(fault === undefined ? {} : { fault }) };
  }

  /** The signature of a thinking block that begins the answer to a request. */
  sign(request: ThinkingRequest, thinking: string): string {
    const hash = createHash('sha256');
    const items = itemsOf(request);
    for (const { text, signature } of items) if (signature === undefined) hash.update(`${text}\n`);
    if (request.messages.at(-1)?.role !== 'assistant') hash.update('assistant\n');
    const thoughts = items.flatMap((item) => item.signature ?? []);
    const signature = `sig_${randomUUID()}`;
    this.#bindings.set(signature, { before: hash.digest('hex'), thoughts, thinking });
    return signature;
  }

  #faultOf(
    { signature, thinking }: { readonly signature: string; readonly thinking: string },
    before: string,
    thoughts: readonly string[],
    place: string,
  ): string | undefined {
    const bound = this.#bindings.get(signature);
    if (bound === undefined) return `${place}: this signature was never given`;
    if (bound.thinking !== thinking) return `${place}: the thinking was changed`;
    if (bound.before !== before) return `${place}: something before the block is not what it was bound to`;
    const left = thoughts.length === 0 ? [] : bound.thoughts.slice(-thoughts.length);
    const fits = left.length === thoughts.length && left.every((one, i) => one === thoughts[i]);
    return fits ? undefined : `${place}: the thinking before the block has a hole, or has a block again that was left out`;
  }
}
