import { type JsonPlace, listPlaces, memberPlaces, textAt } from './json-places.js';
import type { WireBlock } from './wire-request.js';

/**
 * A message of Anthropic's wire in the form that is compared and hashed: blocks without cache
 * marks, and a plain text as one block.
 */
export interface WireMessage {
  readonly role: string;
  readonly content: readonly WireBlock[];
}

/** The parts of a body that steering reads. */
export interface AnthropicBody {
  readonly messages: readonly { readonly role: string; readonly content: string | readonly WireBlock[] }[];
  readonly system: unknown;
  readonly model: unknown;
  readonly tools?: unknown;
}

/** A body as text and as parsed value. */
interface WrittenBody {
  readonly text: string;
  readonly body: AnthropicBody;
  readonly list: JsonPlace;
  readonly own: readonly WireMessage[];
}

/** Replaces the content of an answer that had only thinking, because no message may be empty. */
const NO_WORDS: WireBlock = { type: 'text', text: '(no words)' };

const markOf = (content: string | readonly WireBlock[]): unknown =>
  typeof content === 'string'
    ? undefined
    : content.findLast((block) => block.cache_control !== undefined)?.cache_control;

/** Writes a body with our messages and the client's own messages, which stay byte for byte. */
export class BodyWriter {
  readonly #body: AnthropicBody;
  readonly #text: string;
  readonly #list: JsonPlace;
  readonly #raw: readonly string[];
  /** The text of each message that may be sent. */
  readonly #texts = new Map<WireMessage, string>();
  readonly #marked = new Set<WireMessage>();
  readonly #own: readonly WireMessage[];
  readonly #places: ReadonlyMap<WireMessage, number>;
  #mark: unknown;

  /** `list` is the place of the messages in the text; `own` has them in comparable form. */
  constructor({ text, body, list, own }: WrittenBody) {
    this.#text = text;
    this.#body = body;
    this.#list = list;
    this.#own = own;
    this.#raw = listPlaces(text, list.from).map((place) => textAt(text, place));
    this.#places = new Map(own.map((message, i) => [message, i]));
    for (const [i, message] of own.entries()) {
      this.#texts.set(message, this.#raw[i] as string);
      const mark = markOf((body.messages[i] as AnthropicBody['messages'][number]).content);
      if (mark === undefined) continue;
      this.#marked.add(message);
      this.#mark = mark;
    }
  }

  /** Returns a message of the client with changed blocks. Unchanged blocks keep their text. */
  with(message: WireMessage, change: (block: WireBlock, at: number) => WireBlock | undefined): WireMessage {
    const place = this.#places.get(message);
    const content = message.content.map((block, at) => change(block, at));
    const made = { ...message, content: content.filter((block) => block !== undefined) };
    if (place === undefined) return made;
    const raw = this.#raw[place] as string;
    const given = (this.#body.messages[place] as AnthropicBody['messages'][number]).content;
    const blocks = memberPlaces(raw, 0).get('content');
    if (blocks === undefined || typeof given === 'string') return made;
    const texts = listPlaces(raw, blocks.from).map((one) => textAt(raw, one));
    const parts = content.flatMap((block, at) => {
      if (block === undefined) return [];
      if (block === message.content[at]) return [texts[at] as string];
      const mark = (given[at] as WireBlock).cache_control;
      return [JSON.stringify(mark === undefined ? block : { ...block, cache_control: mark })];
    });
    const none = parts.length === 0 ? JSON.stringify(NO_WORDS) : '';
    this.#texts.set(made, `${raw.slice(0, blocks.from)}[${parts.join(',')}${none}]${raw.slice(blocks.to)}`);
    if (this.#marked.has(message)) this.#marked.add(made);
    return parts.length === 0 ? Object.assign(made, { content: [NO_WORDS] }) : made;
  }

  body(messages: readonly WireMessage[]): string {
    const isOwn = messages.length === this.#own.length && messages.every((message, i) => message === this.#own[i]);
    if (isOwn) return this.#text;
    const hasMark = this.#mark === undefined || messages.some((message) => this.#marked.has(message));
    const last = messages.findLastIndex((message) => !this.#texts.has(message));
    const texts = messages.map((message, i) => {
      const known = this.#texts.get(message);
      if (known !== undefined) return known;
      return JSON.stringify(hasMark || i !== last ? message : this.#withMark(message));
    });
    return `${this.#text.slice(0, this.#list.from)}[${texts.join(',')}]${this.#text.slice(this.#list.to)}`;
  }

  /** Without a cache mark after our messages, the provider would not cache them. */
  #withMark(message: WireMessage): WireMessage {
    const end = message.content.length - 1;
    const content = message.content.map((block, i) => (i === end ? { ...block, cache_control: this.#mark } : block));
    return { ...message, content };
  }
}
