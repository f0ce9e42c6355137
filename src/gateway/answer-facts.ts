import { hashText } from '../objects/hashes.js';
import type { Sha256 } from '../objects/ids.js';
import { defined } from '../values/defined.js';
import { asList, asObject, type Json } from './json-facts.js';
import type { Wire } from './wires.js';

/** The tokens that a provider counted for one model call. */
export interface SentUsage {
  /** Request tokens that the provider neither read from a cache nor wrote to one. */
  readonly input?: number;
  readonly output?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** The part of `cacheWrite` that lives for an hour. */
  readonly cacheWriteHour?: number;
}

/** The answer to a request, without its texts, which the transcript contains. */
export interface AnswerFacts {
  readonly status: number;
  /** The provider's id of the answer. */
  readonly id?: string;
  readonly model?: string;
  /** Ids of the answer's items and calls, in order. */
  readonly items?: readonly string[];
  readonly calls?: readonly string[];
  /**
   * Hashes of the answer's text blocks, in order. A step with one of these texts belongs to this
   * answer.
   */
  readonly texts?: readonly Sha256[];
  /** The types of the answer's blocks or items, in order, such as `thinking` or `compaction`. */
  readonly blocks?: readonly string[];
  readonly stop?: string;
  readonly usage?: SentUsage;
  /** The provider's reports on its cache and on its own edits, exactly as in the answer. */
  readonly verdicts?: Json;
  /** The type of the error and its message. */
  readonly error?: { readonly type: string; readonly message?: string };
  /** Whether the stream ended before the answer was complete. */
  readonly isCut?: true;
}

/** The fields in which a provider reports on its cache and on its edits of the request. */
const VERDICTS = ['input_transformations', 'cache_diagnostics', 'diagnostics', 'context_management', 'container'];
const LONGEST_MESSAGE = 500;
const MOST_NAMES = 1_000;
/** Maximum characters of one report of the provider, and of all unfinished texts of an answer. */
const LONGEST_VERDICT = 65_536;
const MOST_OPEN = 32 * 1_048_576;

/** Adds a name, unless there are too many. The limit protects against a hostile answer. */
function addName<T>(to: Set<T> | T[], name: T): void {
  if ((Array.isArray(to) ? to.length : to.size) >= MOST_NAMES) return;
  if (Array.isArray(to)) to.push(name);
  else to.add(name);
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, LONGEST_MESSAGE).toWellFormed() : undefined;
const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** Collects the facts of one answer from the events of its stream, or from its whole JSON. */
export class AnswerCollector {
  readonly #wire: Wire;
  readonly #clean: (text: string) => string;
  readonly #masked: (text: string) => string;
  #id: string | undefined;
  #model: string | undefined;
  #stop: string | undefined;
  #usage: SentUsage = {};
  #verdicts: Json = {};
  #error: AnswerFacts['error'];
  #isEnded = false;
  readonly #items = new Set<string>();
  readonly #calls = new Set<string>();
  readonly #blocks: string[] = [];
  readonly #texts: Sha256[] = [];
  /** The texts of blocks that have not ended, by index. */
  readonly #open = new Map<number, string[]>();
  #openChars = 0;

  /**
   * `clean` removes credentials from an error's message. `masked` removes secrets from texts before
   * they are hashed.
   */
  constructor(
    wire: Wire,
    { clean, masked }: { readonly clean: (text: string) => string; readonly masked: (text: string) => string },
  ) {
    this.#wire = wire;
    this.#clean = clean;
    this.#masked = masked;
  }

  /** Takes one event of a stream. Ignores events of unknown types. */
  take(event: unknown): void {
    const data = asObject(event);
    if (data.error !== undefined && data.error !== null) this.#fail(data.error);
    if (this.#wire === 'anthropic') this.#anthropic(data);
    else if (this.#wire === 'responses') this.#responses(data);
    else if (this.#wire === 'chat') this.#chat(data);
    else this.#gemini(data);
  }

  /** Takes an answer that is not a stream. */
  takeWhole(answer: unknown): void {
    const whole = asObject(answer);
    // Gemini may send a whole stream as one list.
    if (Array.isArray(answer)) for (const part of answer) this.take(part);
    else if (whole.error !== undefined && whole.error !== null) this.#fail(whole.error);
    else if (this.#wire === 'anthropic') this.#anthropicMessage(whole);
    else if (this.#wire === 'responses') this.#response(whole);
    else this.take(whole);
    this.#isEnded = true;
  }

  /** Returns the facts. If the stream has not ended, they are marked as cut. */
  facts(status: number): AnswerFacts {
    for (const index of [...this.#open.keys()]) this.#endText(index);
    const some = <T>(values: Iterable<T>): readonly T[] | undefined => {
      const all = [...values];
      return all.length === 0 ? undefined : all;
    };
    return {
      status,
      ...defined({
        id: this.#id,
        model: this.#model,
        items: some(this.#items),
        calls: some(this.#calls),
        texts: some(this.#texts),
        blocks: some(this.#blocks),
        stop: this.#stop,
        usage: Object.keys(this.#usage).length === 0 ? undefined : this.#usage,
        verdicts: Object.keys(this.#verdicts).length === 0 ? undefined : this.#verdicts,
        error: this.#error,
        isCut: this.#isEnded || this.#error !== undefined ? undefined : (true as const),
      }),
    };
  }

  #fail(error: unknown): void {
    const { type, code, status, message } = asObject(error);
    // A text is cleaned before it is truncated, so that no part of a credential remains.
    const cleaned = (value: unknown): string | undefined =>
      text(typeof value === 'string' ? this.#clean(value) : undefined);
    const name = cleaned(type) ?? cleaned(code) ?? cleaned(status) ?? cleaned(error) ?? 'error';
    this.#error = { type: name, ...defined({ message: cleaned(message) }) };
  }

  #hash(text: string): Sha256 {
    return hashText(this.#masked(text.toWellFormed()));
  }

  #append(index: number, part: unknown): void {
    if (typeof part !== 'string') return;
    this.#openChars += part.length;
    // These texts then get no hash, so the answer is matched by its ids.
    if (this.#openChars > MOST_OPEN) {
      this.#open.clear();
      return;
    }
    const parts = this.#open.get(index) ?? [];
    parts.push(part);
    this.#open.set(index, parts);
  }

  #endText(index: number): void {
    const whole = this.#open.get(index)?.join('');
    this.#open.delete(index);
    if (this.#openChars <= MOST_OPEN) this.#openChars -= whole?.length ?? 0;
    if (whole !== undefined && whole !== '') addName(this.#texts, this.#hash(whole));
  }

  #judge(from: Json): void {
    for (const name of VERDICTS) {
      const found = from[name];
      if (found === undefined || found === null) continue;
      const chars = JSON.stringify(found).length;
      // A truncated report would look complete.
      const kept = chars > LONGEST_VERDICT ? { left_out_chars: chars } : found;
      this.#verdicts = { ...this.#verdicts, [name]: kept };
    }
  }

  #anthropicUsage(usage: unknown): void {
    const { input_tokens, output_tokens, cache_read_input_tokens, cache_creation_input_tokens, cache_creation } =
      asObject(usage);
    const found = {
      input: count(input_tokens),
      output: count(output_tokens),
      cacheRead: count(cache_read_input_tokens),
      cacheWrite: count(cache_creation_input_tokens),
      cacheWriteHour: count(asObject(cache_creation).ephemeral_1h_input_tokens) || undefined,
    };
    this.#usage = { ...this.#usage, ...defined(found) };
  }

  #anthropicMessage(message: Json): void {
    this.#id ??= text(message.id);
    this.#model ??= text(message.model);
    this.#anthropicUsage(message.usage);
    this.#judge(message);
    for (const [index, block] of asList(message.content).entries()) {
      this.#block(index, block);
      this.#endText(index);
    }
    this.#stop = text(message.stop_reason) ?? this.#stop;
  }

  #block(index: number, block: Json): void {
    const [type, id] = [text(block.type) ?? 'unknown', text(block.id)];
    addName(this.#blocks, type);
    if (type === 'text') this.#append(index, block.text ?? '');
    if (type.endsWith('tool_use') && id !== undefined) addName(this.#calls, id);
  }

  #anthropic(event: Json): void {
    const index = count(event.index) ?? 0;
    if (event.type === 'message_start') this.#anthropicMessage(asObject(event.message));
    else if (event.type === 'content_block_start') this.#block(index, asObject(event.content_block));
    else if (event.type === 'content_block_delta') this.#append(index, asObject(event.delta).text);
    else if (event.type === 'content_block_stop') this.#endText(index);
    else if (event.type === 'message_delta') {
      const delta = asObject(event.delta);
      this.#stop = text(delta.stop_reason) ?? this.#stop;
      this.#anthropicUsage(event.usage);
      this.#judge(event);
      this.#judge(delta);
    } else if (event.type === 'message_stop') this.#isEnded = true;
  }

  #item(item: Json): void {
    const [type, id, call] = [text(item.type) ?? 'message', text(item.id), text(item.call_id)];
    addName(this.#blocks, type);
    if (id !== undefined) addName(this.#items, id);
    if (call !== undefined) addName(this.#calls, call);
    if (type !== 'message') return;
    const whole = asList(item.content).map((part) => (typeof part.text === 'string' ? part.text : ''));
    if (whole.join('') !== '') addName(this.#texts, this.#hash(whole.join('')));
  }

  #response(response: Json): void {
    this.#id ??= text(response.id);
    this.#model ??= text(response.model);
    this.#stop = text(asObject(response.incomplete_details).reason) ?? text(response.status) ?? this.#stop;
    const { input_tokens, output_tokens, input_tokens_details } = asObject(response.usage);
    const [input, cached] = [count(input_tokens), count(asObject(input_tokens_details).cached_tokens)];
    const found = {
      input: input === undefined ? undefined : Math.max(0, input - (cached ?? 0)),
      output: count(output_tokens),
      cacheRead: cached,
    };
    this.#usage = { ...this.#usage, ...defined(found) };
    if (response.error !== undefined && response.error !== null) this.#fail(response.error);
    this.#judge(response);
    // A stream has reported each item already. Other answers have their items only here.
    if (this.#blocks.length === 0) for (const item of asList(response.output)) this.#item(item);
  }

  #responses(event: Json): void {
    const type = text(event.type) ?? '';
    if (type === 'response.created' || type === 'response.in_progress') this.#id ??= text(asObject(event.response).id);
    else if (type === 'response.output_item.done') this.#item(asObject(event.item));
    else if (/^response\.(?:completed|incomplete|failed|cancelled|done)$/.test(type)) {
      this.#response(asObject(event.response));
      this.#isEnded = true;
    }
  }

  #chat(chunk: Json): void {
    this.#id ??= text(chunk.id);
    this.#model ??= text(chunk.model);
    for (const choice of asList(chunk.choices)) {
      const index = count(choice.index) ?? 0;
      const part = asObject(choice.delta ?? choice.message);
      this.#append(index, part.content);
      for (const call of asList(part.tool_calls)) {
        const id = text(call.id);
        if (id !== undefined) addName(this.#calls, id);
      }
      const stop = text(choice.finish_reason);
      if (stop === undefined) continue;
      this.#stop = stop;
      this.#endText(index);
      this.#isEnded = true;
    }
    if (chunk.usage === undefined || chunk.usage === null) return;
    const { prompt_tokens, completion_tokens, prompt_tokens_details } = asObject(chunk.usage);
    const [input, cached] = [count(prompt_tokens), count(asObject(prompt_tokens_details).cached_tokens)];
    const found = {
      input: input === undefined ? undefined : Math.max(0, input - (cached ?? 0)),
      output: count(completion_tokens),
      cacheRead: cached,
    };
    this.#usage = { ...this.#usage, ...defined(found) };
  }

  #gemini(chunk: Json): void {
    this.#id ??= text(chunk.responseId);
    this.#model ??= text(chunk.modelVersion);
    for (const [index, candidate] of asList(chunk.candidates).entries()) {
      for (const part of asList(asObject(candidate.content).parts)) {
        const { id } = asObject(part.functionCall);
        if (typeof id === 'string') addName(this.#calls, id);
        if (part.thought !== true) this.#append(index, part.text);
      }
      const stop = text(candidate.finishReason);
      if (stop === undefined) continue;
      this.#stop = stop;
      this.#endText(index);
      this.#isEnded = true;
    }
    const { promptTokenCount, candidatesTokenCount, cachedContentTokenCount } = asObject(chunk.usageMetadata);
    const [input, cached] = [count(promptTokenCount), count(cachedContentTokenCount)];
    const found = {
      input: input === undefined ? undefined : Math.max(0, input - (cached ?? 0)),
      output: count(candidatesTokenCount),
      cacheRead: cached,
    };
    this.#usage = { ...this.#usage, ...defined(found) };
  }
}
