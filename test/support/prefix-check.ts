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

/** The parts of an Anthropic request to which a thinking block is bound. */
export interface ThinkingRequest {
  readonly system?: string | readonly WireBlock[];
  readonly tools?: readonly unknown[];
  readonly messages: readonly ThinkingMessage[];
}

/** The verdict on one request. */
export interface PrefixVerdict {
  /** Thinking blocks that the request returns. */
  readonly returned: number;
  /**
   * Returned blocks whose signatures still match their prefix. After the first mismatch no block is
   * valid.
   */
  readonly valid: number;
  /** The place of the first mismatch and its reason; undefined if all match. */
  readonly fault?: string;
}

/** An item of a request in order; a thinking block has its signature. */
interface Item {
  readonly text: string;
  readonly place: string;
  readonly signature?: string;
  readonly thinking?: string;
}

/** The binding of a signature: everything before it except thoughts, and the thoughts before it. */
interface Binding {
  readonly before: string;
  readonly thoughts: readonly string[];
  readonly thinking: string;
}

const THOUGHTS: ReadonlySet<string> = new Set(['thinking', 'redacted_thinking']);

/** Removes cache marks, which may move, and members without a value, which no wire carries. */
function unmarked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unmarked);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) =>
      key === 'cache_control' || one === undefined ? [] : [[key, unmarked(one)]],
    ),
  );
}

const plain = (value: unknown): string => canonicalJson(unmarked(value) as Parameters<typeof canonicalJson>[0]);

/** Converts a bare text to a list of one block. */
const blocksOf = (content: string | readonly WireBlock[] = []): readonly WireBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/**
 * Returns everything that may precede a thinking block. Merges consecutive messages of one role.
 */
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

/**
 * Returns a request as one text for comparison. A request that continues another begins with its
 * whole text.
 */
export function wireText(request: ThinkingRequest): string {
  return itemsOf(request)
    .map(({ text }) => `${text}\n`)
    .join('');
}

/**
 * Simulates a provider with bound thinking. It signs each thinking block over everything before it,
 * and checks each block that a request returns. Thinking may be omitted for good from the
 * beginning, from the end, or altogether. A hole, an earlier change, and a returning block are
 * mismatches. Cache marks, key order, and a bare text instead of a list do not matter.
 */
export class PrefixCheck {
  readonly #bindings = new Map<string, Binding>();

  /** Checks which of the returned blocks match. */
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

  /** Signs a thinking block that begins the answer to a request. */
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
    if (bound === undefined) return `${place}: this signature was never issued`;
    if (bound.thinking !== thinking) return `${place}: the thinking was changed`;
    if (bound.before !== before) return `${place}: the content before the block is not the content that was signed`;
    const left = thoughts.length === 0 ? [] : bound.thoughts.slice(-thoughts.length);
    const fits = left.length === thoughts.length && left.every((one, i) => one === thoughts[i]);
    return fits ? undefined : `${place}: thinking before the block is missing, or a dropped block is back`;
  }
}
