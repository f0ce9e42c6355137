import { ownMember } from '../values/own-member.js';
import { asList, asObject, type Json, parsedBody } from './json-facts.js';
import type { Wire } from './wires.js';

/** Maximum size of a kept answer, in UTF-16 units of its events. */
const MOST_KEPT = 32 * 1_048_576;

/**
 * Returns whether a later request may continue the answer without repeating it. That is possible in
 * a message thread of Anthropic, and for a response that the provider stores.
 */
export function mayBeContinued(wire: Wire, body: Buffer): boolean {
  // Searching the bytes saves parsing: few requests have a thread, and Codex stores nothing.
  if (wire === 'anthropic') return body.includes('"thread"') && asObject(parsedBody(body).thread).type !== undefined;
  return wire === 'responses' && !body.includes('"store":false') && parsedBody(body).store !== false;
}

/** For each type of delta: the field with its text, and the field of the block to extend. */
const APPENDED: Readonly<Record<string, readonly [from: string, to: string]>> = {
  text_delta: ['text', 'text'],
  thinking_delta: ['thinking', 'thinking'],
  signature_delta: ['signature', 'signature'],
  compaction_delta: ['content', 'content'],
};

interface OpenBlock {
  readonly block: Record<string, unknown>;
  /** The pieces of the call's arguments. */
  readonly args: string[];
}

/**
 * Collects the content of one answer, so that a request that continues it can be rebuilt. Blocks of
 * unknown types are kept unchanged. A delta of an unknown type makes the content incomplete.
 */
export class KeptAnswer {
  readonly #wire: Wire;
  readonly #open = new Map<number, OpenBlock>();
  #items: Json[] = [];
  #size = 0;
  #isWhole = false;
  #isLost = false;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Takes one event of a stream. */
  take(event: Json, chars: number): void {
    this.#size += chars;
    if (this.#size > MOST_KEPT) this.#lose();
    if (this.#isLost) return;
    if (this.#wire === 'anthropic') this.#anthropic(event);
    else this.#responses(event);
  }

  /** Takes an answer that is not a stream. */
  takeWhole(answer: Json): void {
    this.#items = [...asList(this.#wire === 'anthropic' ? answer.content : answer.output)];
    this.#isWhole = answer.error === undefined || answer.error === null;
  }

  /** Returns the blocks or items of the answer as JSON. Undefined if a part is missing. */
  json(): Buffer | undefined {
    return this.#isWhole && !this.#isLost ? Buffer.from(JSON.stringify(this.#items)) : undefined;
  }

  #lose(): void {
    this.#isLost = true;
    this.#items = [];
    this.#open.clear();
  }

  #anthropic(event: Json): void {
    const index = typeof event.index === 'number' ? event.index : -1;
    if (event.type === 'content_block_start')
      this.#open.set(index, { block: { ...asObject(event.content_block) }, args: [] });
    else if (event.type === 'content_block_delta') this.#delta(this.#open.get(index), asObject(event.delta));
    else if (event.type === 'content_block_stop') this.#end(index);
    else if (event.type === 'message_stop') this.#isWhole = this.#open.size === 0;
  }

  #delta(open: OpenBlock | undefined, delta: Json): void {
    const type = String(delta.type);
    const [from, to] = ownMember(APPENDED, type) ?? [];
    if (open === undefined) this.#lose();
    else if (type === 'input_json_delta' && typeof delta.partial_json === 'string') open.args.push(delta.partial_json);
    else if (type === 'citations_delta') open.block.citations = [...asList(open.block.citations), delta.citation];
    else if (from !== undefined && to !== undefined) {
      const [before, more] = [open.block[to] ?? '', delta[from] ?? ''];
      if (typeof before !== 'string' || typeof more !== 'string') this.#lose();
      else open.block[to] = before + more;
    } else this.#lose();
  }

  #end(index: number): void {
    const open = this.#open.get(index);
    this.#open.delete(index);
    if (open === undefined) {
      this.#lose();
      return;
    }
    const { block, args } = open;
    const text = args.join('');
    try {
      this.#items.push(text === '' ? block : { ...block, input: JSON.parse(text) as unknown });
    } catch {
      this.#lose();
    }
  }

  #responses(event: Json): void {
    if (event.type === 'response.output_item.done') this.#items.push(asObject(event.item));
    else if (event.type === 'response.completed' || event.type === 'response.incomplete') {
      const output = asList(asObject(event.response).output);
      if (output.length >= this.#items.length) this.#items = [...output];
      this.#isWhole = true;
    }
  }
}
