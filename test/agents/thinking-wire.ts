import {
  PrefixCheck,
  type PrefixVerdict,
  type ThinkingRequest,
  type WireBlock,
  wireText,
} from '../support/prefix-check.js';
import type { LoopWire, WireAnswer, WireCall } from './loop-model.js';
import { pairFault } from './wire-checks.js';

type Json = Readonly<Record<string, unknown>>;

/** Prices of a provider with a prompt cache for an input token, as a share of a fresh one. */
export interface PriceTable {
  readonly read: number;
  readonly write: number;
}

/** Anthropic's prices for a lifetime of five minutes, as of 2026-11. */
const FIVE_MINUTES: PriceTable = { read: 0.1, write: 1.25 };

/** One call of an agent's turn as the provider sees it. */
export interface ThinkingCall extends PrefixVerdict {
  readonly request: ThinkingRequest;
  /**
   * UTF-16 units of the request as one text, and of the beginning that it shares with the previous
   * one.
   */
  readonly chars: number;
  readonly same: number;
  /** Whether it was refused. */
  readonly refused: boolean;
}

/** All calls of a run together. */
export interface ThinkingTotals {
  readonly calls: number;
  readonly refused: number;
  readonly returned: number;
  readonly valid: number;
  /** The share of all requests that repeats the beginning of the previous request. */
  readonly same: number;
  /** The cost of all requests, as a number of UTF-16 units of fresh input. */
  readonly cost: number;
  readonly chars: number;
}

/** Sums up calls under a price table. */
export function totalsOf(calls: readonly ThinkingCall[], { read, write }: PriceTable = FIVE_MINUTES): ThinkingTotals {
  const sum = (of: (call: ThinkingCall) => number): number => calls.reduce((total, call) => total + of(call), 0);
  const [chars, same] = [sum((call) => call.chars), sum((call) => call.same)];
  return {
    calls: calls.length,
    refused: calls.filter(({ refused }) => refused).length,
    returned: sum(({ returned }) => returned),
    valid: sum(({ valid }) => valid),
    same: same / chars,
    cost: read * same + write * (chars - same),
    chars,
  };
}

function commonLength(one: string, two: string): number {
  let [known, beyond] = [0, Math.min(one.length, two.length) + 1];
  while (beyond - known > 1) {
    const middle = (known + beyond) >>> 1;
    if (one.slice(known, middle) === two.slice(known, middle)) known = middle;
    else beyond = middle;
  }
  return known;
}

const refusal = (message: string): WireAnswer => ({
  status: 400,
  refusal: { type: 'error', error: { type: 'invalid_request_error', message } },
});

/** Approximate characters per token. */
const CHARS_PER_TOKEN = 3.6;
const tokens = (chars: number): number => Math.round(chars / CHARS_PER_TOKEN);

function blockEvents(index: number, start: Json, ...deltas: readonly Json[]): readonly Json[] {
  return [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/**
 * The Anthropic wire of a model that thinks before every answer. Its provider binds each thinking
 * block to everything before it. By default, it answers a request with other blocks with 400.
 *
 * With `accepts`, it accepts such blocks and counts them. It reports its cache hits.
 */
export class ThinkingWire implements LoopWire {
  readonly name = 'anthropic';
  readonly path = '/messages';
  /** The calls of the agent's turns, refused ones too; not those for titles and summaries. */
  readonly seen: ThinkingCall[] = [];
  readonly #check = new PrefixCheck();
  readonly #accepts: boolean;
  #before = '';

  constructor({ accepts = false }: { readonly accepts?: boolean } = {}) {
    this.#accepts = accepts;
  }

  readonly tools: LoopWire['tools'] = ({ tools }) => ((tools ?? []) as readonly Json[]).map(({ name }) => String(name));

  readonly refused: NonNullable<LoopWire['refused']> = (body, main) => {
    const request = body as unknown as ThinkingRequest;
    const pairs = pairFault(request.messages);
    if (pairs !== undefined) return refusal(pairs);
    if (!main) return undefined;
    const verdict = this.#check.examine(request);
    const refused = verdict.fault !== undefined && !this.#accepts;
    const text = wireText(request);
    const same = commonLength(this.#before, text);
    this.seen.push({ ...verdict, request, chars: text.length, same, refused });
    if (!refused) this.#before = text;
    const fault = 'Invalid signature in thinking block. The block is bound to a different conversation';
    return refused ? refusal(`${fault}: ${verdict.fault}`) : undefined;
  };

  readonly answer: LoopWire['answer'] = ({ body, main, move: { tools = [], say }, number }: WireCall) => {
    const request = body as unknown as ThinkingRequest;
    const { chars = 0, same = 0 } = main ? (this.seen.at(-1) ?? {}) : {};
    const thinking = `Thought ${number}: what comes next follows from what was read before.`;
    const thoughts = (index: number): readonly Json[] =>
      blockEvents(
        index,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking },
        { type: 'signature_delta', signature: this.#check.sign(request, thinking) },
      );
    const makers: readonly ((index: number) => readonly Json[])[] = [
      ...(main ? [thoughts] : []),
      ...(say === undefined
        ? []
        : [(index: number) => blockEvents(index, { type: 'text', text: '' }, { type: 'text_delta', text: say })]),
      ...tools.map(({ name, args }, i) => (index: number): readonly Json[] => {
        const block = { type: 'tool_use', id: `toolu_${number}_${i}`, name, input: {} } satisfies WireBlock;
        return blockEvents(index, block, { type: 'input_json_delta', partial_json: JSON.stringify(args) });
      }),
    ];
    const usage = {
      input_tokens: 0,
      cache_read_input_tokens: tokens(same),
      cache_creation_input_tokens: tokens(chars - same),
      output_tokens: 0,
    };
    const message = {
      id: `msg_${number}`,
      type: 'message',
      role: 'assistant',
      model: 'scripted',
      content: [],
      stop_reason: null,
      usage,
    };
    const events = [
      { type: 'message_start', message },
      ...makers.flatMap((make, index) => make(index)),
      {
        type: 'message_delta',
        delta: { stop_reason: tools.length === 0 ? 'end_turn' : 'tool_use', stop_sequence: null },
        usage: { output_tokens: 5 },
      },
      { type: 'message_stop' },
    ];
    return { events, named: true };
  };
}
