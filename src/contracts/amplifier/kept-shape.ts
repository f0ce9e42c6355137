import { canonicalJson, type Json } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import type { Sha256 } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { Entry, EntryCall, TokenCounter } from '../projection/entry.js';
import { type AmplifierMessage, type Block, callsIn, RESULT_ROLES } from './amplifier-message.js';

/** A block that is too long for a record. Its canonical JSON is stored as a separate text. */
export interface LongBlock {
  /**
   * The block's position in the message. There a placeholder keeps the block's type, and a call's
   * id and name.
   */
  readonly at: number;
  readonly sha256: Sha256;
  readonly tokens: number;
}

/** The fields of a message that the session's chat does not store. */
export interface MessageShape {
  /** The members of the message, without `content` if that is just the text of the entry. */
  readonly message: { readonly [member: string]: Json };
  /** True if the content of the message is the text of the entry. */
  readonly isText: boolean;
  readonly long?: readonly LongBlock[];
}

/** A message as it was given, without its long blocks. */
export interface GivenMessage {
  readonly message: AmplifierMessage;
  readonly long: readonly LongBlock[];
}

/**
 * Maximum characters of a block inside a record. The second limit applies if the first leaves the
 * record too large.
 */
const LONGEST_BLOCKS = [60_000, 1_000] as const;
/** Blocks with more characters than this are compared by hash. */
const COMPARED = 1_000;
const LONGEST_SHAPE = 400_000;
/** Approximate tokens of an image. The exact number depends on the model. */
const TOKENS_OF_IMAGE = 1_600;

/** Returns the tokens that a block adds to the text of its entry. */
export function tokensOfBlock(block: Block, counter: TokenCounter): number {
  const { type } = block;
  if (type === 'text' || type === 'tool_call' || type === 'tool_use') return 0;
  return type === 'image' ? TOKENS_OF_IMAGE : counter.count(JSON.stringify(block));
}

/** Returns the placeholder of a long block: its type, and the id and name of a call. */
const placeOf = ({ type, id, name }: Block): Block =>
  (type === 'tool_call' || type === 'tool_use') && typeof id === 'string'
    ? { type, id, ...defined({ name }) }
    : { type };

const textOf = (block: Block): string => canonicalJson(block as unknown as Json);

/** The stored form of a message: its shape and the texts of its long blocks. */
interface KeptShape {
  readonly shape: MessageShape;
  readonly texts: readonly string[];
}

function splitShape(message: AmplifierMessage, longest: number, counter: TokenCounter): KeptShape {
  const texts: string[] = [];
  const long: LongBlock[] = [];
  const content = (message.content as readonly Block[]).map((block, at): Block => {
    if (JSON.stringify(block).length <= longest) return block;
    const text = textOf(block);
    texts.push(text);
    long.push({ at, sha256: hashText(text), tokens: tokensOfBlock(block, counter) });
    return placeOf(block);
  });
  const shape = { message: { ...message, content } as unknown as MessageShape['message'], isText: false };
  return { shape: long.length === 0 ? shape : { ...shape, long }, texts };
}

function keptShapes(message: AmplifierMessage, counter: TokenCounter): readonly KeptShape[] {
  const { content, ...members } = message;
  if (Array.isArray(content)) return LONGEST_BLOCKS.map((longest) => splitShape(message, longest, counter));
  const isText = typeof content === 'string' || (content === null && RESULT_ROLES.has(message.role));
  const kept = isText ? members : { ...members, content: content ?? null };
  return [{ shape: { message: kept as unknown as MessageShape['message'], isText }, texts: [] }];
}

function without({ shape, texts }: KeptShape, ...left: readonly string[]): KeptShape {
  const members = Object.entries(shape.message).filter(([name]) => !left.includes(name));
  return { shape: { ...shape, message: Object.fromEntries(members) }, texts };
}

/**
 * Returns the stored form of a message apart from its text. The longest blocks become separate
 * texts. If the rest is too large for a record, its calls are left out, because the chat has them,
 * then its metadata.
 */
export function shapeOf(message: AmplifierMessage, counter: TokenCounter): KeptShape {
  const shapes = keptShapes(defined(message) as AmplifierMessage, counter);
  const candidates = [
    ...shapes,
    ...shapes.map((one) => without(one, 'tool_calls')),
    ...shapes.map((one) => without(one, 'tool_calls', 'metadata')),
  ];
  const fits = candidates.find(({ shape }) => JSON.stringify(shape).length <= LONGEST_SHAPE);
  if (fits !== undefined) return fits;
  const { role, name, tool_call_id: call } = message;
  return {
    shape: { message: defined({ role, name, tool_call_id: call }) as MessageShape['message'], isText: true },
    texts: [],
  };
}

const plainCall = ({ native, tool, argsText }: EntryCall) => ({
  id: native,
  type: 'function',
  function: { name: tool, arguments: argsText },
});

/**
 * Converts an entry to the message that was given, as far as it is stored. `shown` replaces the
 * content if a view changed it.
 */
export function messageOf(entry: Entry, shape: MessageShape | undefined, shown?: string): GivenMessage {
  const text = shown ?? entry.text ?? '';
  const calls = entry.kind === 'assistant' && entry.calls.length > 0 ? { tool_calls: entry.calls.map(plainCall) } : {};
  if (shape !== undefined) {
    const isAsGiven = !shape.isText && shown === undefined;
    const made = callsIn(shape.message as unknown as AmplifierMessage).length > 0 ? {} : calls;
    const message = {
      ...shape.message,
      ...made,
      ...(isAsGiven ? {} : { content: text }),
    } as unknown as AmplifierMessage;
    return { message, long: isAsGiven ? (shape.long ?? []) : [] };
  }
  if (entry.kind === 'result')
    return whole({ role: 'tool', tool_call_id: entry.native, name: entry.tool, content: text });
  if (entry.kind !== 'assistant') {
    const role = entry.kind === 'system' ? 'system' : 'user';
    return whole({ role, content: text, ...('name' in entry ? defined({ name: entry.name }) : {}) });
  }
  return whole({ role: 'assistant', content: text, ...calls });
}

/** Wraps a message without long blocks. */
export const whole = (message: AmplifierMessage): GivenMessage => ({ message, long: [] });

/** Restores the long blocks of a message from their texts. */
export function filledMessage({ message, long }: GivenMessage, texts: ReadonlyMap<Sha256, string>): AmplifierMessage {
  if (long.length === 0) return message;
  const blocks = [...(message.content as readonly Block[])];
  for (const { at, sha256 } of long) blocks[at] = JSON.parse(texts.get(sha256) ?? 'null') as Block;
  return { ...message, content: blocks };
}

/** Returns a key that is equal for equal messages. It covers the content, not the time. */
export function sameKey({ message, long }: GivenMessage): string {
  const { role, content, tool_call_id: call } = message;
  const hashes = new Map(long.map(({ at, sha256 }) => [at, sha256]));
  const blockKey = (block: Block, at: number): string => {
    const known = hashes.get(at);
    if (known !== undefined) return known;
    const text = textOf(block);
    return text.length > COMPARED ? hashText(text) : text;
  };
  const said = Array.isArray(content) ? content.map(blockKey) : (content ?? '');
  return JSON.stringify([role, said, call ?? null, callsIn(message).map(({ id }) => id)]);
}
