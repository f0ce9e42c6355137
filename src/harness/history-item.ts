import type { Json } from '../objects/canonical-json.js';
import type { ModelUsage } from '../objects/step.js';
import { defined } from '../values/defined.js';
import { CALL_PARTS, contentText } from './content-text.js';
import { HarnessError } from './harness-error.js';
import type { ReportedContent, ReportedFile, ReportedMessage } from './message-schema.js';

/** A message without its calls. */
interface MessageItem {
  readonly kind: 'message';
  readonly role: string;
  readonly text: string;
  readonly name?: string;
  /** The harness's id of the message. */
  readonly id?: string;
  /** Token count of the model call, for a message of the model. */
  readonly usage?: ModelUsage;
}

/** A tool call with its result. */
export interface CallItem {
  readonly kind: 'call';
  /** Undefined if the wire gives calls no id. */
  readonly id?: string;
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly content: string;
  readonly status: 'ok' | 'fail';
  readonly files: readonly ReportedFile[];
  readonly cwd?: string;
  /** The message that made the call, if any. */
  readonly from?: NonNullable<OpenCall['from']>;
}

/** An entry of a history, in chat order. `index` is that of its message. */
export type HistoryItem = (MessageItem | CallItem) & { readonly index: number };

/** A call without a result yet. */
export interface OpenCall {
  readonly tool: string;
  readonly args: CallItem['args'];
  /**
   * The message that made the call: its index in the list, or its step if an earlier list had it.
   */
  readonly from?: { readonly index: number } | { readonly step: number };
}

/** A parsed history. */
export interface History {
  /** Undefined if the history does not begin with one. */
  readonly systemPrompt: string | undefined;
  readonly items: readonly HistoryItem[];
  /** Calls without a result yet, by id. */
  readonly open: ReadonlyMap<string, OpenCall>;
  /**
   * Indexes of the user messages with no call open before them. A call without a result stays open
   * until the model speaks after a later user message.
   */
  readonly settled: readonly number[];
}

type Part = Readonly<Record<string, unknown>>;

const SYSTEM_ROLES: ReadonlySet<string> = new Set(['system', 'developer']);
const RESULT_ROLES: ReadonlySet<string> = new Set(['tool', 'toolResult', 'function']);

/**
 * Returns arguments as a map, as given or parsed from the model's text. A text that is not an
 * object is stored as `raw`.
 */
export function argsOf(value: unknown): CallItem['args'] {
  if (value === undefined || value === null || value === '') return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as CallItem['args'];
  if (typeof value !== 'string') return { raw: value as Json };
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as CallItem['args'];
  } catch {
    // The model's text need not be JSON. Keep it as it is.
  }
  return { raw: value };
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

interface Announced extends Omit<OpenCall, 'from'> {
  readonly id: string | undefined;
}

function announcedBy(call: Part): Announced | undefined {
  const inner = (call.function ?? call.custom ?? call) as Part;
  const tool = textOf(inner.name) ?? textOf(call.name);
  if (tool === undefined) return undefined;
  return { id: textOf(call.id), tool, args: argsOf(inner.arguments ?? inner.input ?? inner.args ?? call.arguments) };
}

const partsOf = (content: ReportedContent | undefined): readonly Part[] =>
  Array.isArray(content) ? (content as readonly Part[]) : [];

/** Returns the calls of a message, from `tool_calls` and from blocks. */
function callsOf({ tool_calls = [], content }: ReportedMessage): readonly Announced[] {
  const blocks = partsOf(content).filter(({ type }) => type === 'tool_use' || type === 'toolCall');
  return [...tool_calls, ...blocks].flatMap((call) => announcedBy(call as Part) ?? []);
}

/** Returns the ids of the calls that a message announces, if they have any. */
export const announcedIds = (message: ReportedMessage): readonly string[] =>
  callsOf(message).flatMap(({ id }) => id ?? []);

interface Result {
  readonly id: string | undefined;
  readonly content: string;
  readonly failed: boolean;
}

/** Returns the results in a message: the message itself, or blocks in it. */
function resultsOf(message: ReportedMessage): readonly Result[] {
  if (RESULT_ROLES.has(message.role)) {
    const id = message.tool_call_id ?? textOf(message.toolCallId);
    return [{ id, content: contentText(message.content), failed: message.is_error ?? message.isError === true }];
  }
  return partsOf(message.content)
    .filter(({ type }) => type === 'tool_result')
    .map((part) => ({
      id: textOf(part.tool_use_id) ?? textOf(part.tool_call_id),
      content: contentText(part.content as ReportedContent | undefined),
      failed: part.is_error === true,
    }));
}

/** Returns whether a message contains more than calls or results. */
function speaks(message: ReportedMessage): boolean {
  if (RESULT_ROLES.has(message.role)) return false;
  const parts = partsOf(message.content);
  return (
    parts.length === 0 ||
    parts.some(({ type }) => !CALL_PARTS.has(String(type))) ||
    !parts.some(({ type }) => type === 'tool_result')
  );
}

/**
 * Returns the token counts of a message's model call. Undefined if it has none in a known shape.
 */
function usageOf({ usage }: ReportedMessage): ModelUsage | undefined {
  const { reason, tokens } = usage?.cache_miss ?? {};
  const told = defined({
    input: usage?.input,
    output: usage?.output,
    cacheRead: usage?.cache_read,
    cacheWrite: usage?.cache_write,
    cacheMiss: reason === undefined ? undefined : { reason, ...defined({ tokens }) },
    thinkingDropped: usage?.thinking_dropped,
  });
  return Object.keys(told).length === 0 ? undefined : told;
}

/** Returns the index of the message that made a call, or -1 if an earlier list had it. */
const placeOf = (from: NonNullable<OpenCall['from']>): number => ('index' in from ? from.index : -1);

/** The calls without a result during a walk over a history. */
class OpenCalls {
  readonly #byId: Map<string, OpenCall>;
  #nameless: OpenCall[] = [];
  /** Calls that were stopped. */
  readonly #givenUp = new Set<string>();

  constructor(known: ReadonlyMap<string, OpenCall>) {
    this.#byId = new Map(known);
  }

  get areWaiting(): boolean {
    return this.#byId.size > this.#givenUp.size;
  }

  /**
   * The model spoke after a user message. No wire allows that while an earlier call is open, so
   * those calls were stopped.
   */
  giveUp(user: number): void {
    for (const [id, { from }] of this.#byId) if (from !== undefined && placeOf(from) < user) this.#givenUp.add(id);
  }

  announce(calls: readonly Announced[], index: number): void {
    for (const { id, ...call } of calls) {
      const open = { ...call, from: { index } };
      if (id === undefined) this.#nameless.push(open);
      else {
        this.#byId.set(id, open);
        this.#givenUp.delete(id);
      }
    }
  }

  /** Returns the call of a result: by id, or else the first one without an id. */
  take(id: string | undefined): OpenCall | undefined {
    if (id === undefined) return this.#nameless.shift();
    const call = this.#byId.get(id);
    this.#byId.delete(id);
    this.#givenUp.delete(id);
    return call;
  }

  left(): ReadonlyMap<string, OpenCall> {
    return this.#byId;
  }
}

/** The position of a result: its message, and the calls open before it. */
interface ResultPlace {
  readonly open: OpenCalls;
  readonly index: number;
}

function callItem(
  message: ReportedMessage,
  { id, content, failed }: Result,
  { open, index }: ResultPlace,
): CallItem & { readonly index: number } {
  const named: OpenCall | undefined =
    textOf(message.name) === undefined ? undefined : { tool: String(message.name), args: {} };
  const call = open.take(id) ?? named;
  if (call === undefined) {
    const which = id === undefined ? 'a call without an id' : `the call ${JSON.stringify(id.slice(0, 100))}`;
    throw new HarnessError(
      'unknown-call',
      `messages[${index}] is the result of ${which}, which was not reported; report the call first`,
    );
  }
  const { files = [], cwd } = message;
  return {
    kind: 'call',
    index,
    ...defined({ id }),
    ...call,
    content,
    status: failed ? 'fail' : 'ok',
    files,
    ...defined({ cwd }),
  };
}

/** How messages are parsed. */
export interface HistoryOptions {
  /** Calls announced earlier without a result yet. */
  readonly known?: ReadonlyMap<string, OpenCall>;
  /** Whether system messages at the beginning are the system prompt. Default: true. */
  readonly prompt?: boolean;
}

/** Parses messages one after another. */
class HistoryWalk {
  readonly #open: OpenCalls;
  readonly #prompts: string[] = [];
  readonly #items: HistoryItem[] = [];
  readonly #settled: number[] = [];
  #isPrompt: boolean;
  #user = -1;
  #next = 0;

  constructor({ known = new Map(), prompt = true }: HistoryOptions) {
    this.#open = new OpenCalls(known);
    this.#isPrompt = prompt;
  }

  /** The part parsed so far. */
  get history(): History {
    const systemPrompt = this.#prompts.length === 0 ? undefined : this.#prompts.join('\n\n');
    return { systemPrompt, items: [...this.#items], open: new Map(this.#open.left()), settled: [...this.#settled] };
  }

  /** Continues with the messages after the parsed ones. */
  on(messages: readonly ReportedMessage[]): this {
    for (; this.#next < messages.length; this.#next++) {
      const message = messages[this.#next] as ReportedMessage;
      this.#isPrompt &&= SYSTEM_ROLES.has(message.role);
      if (this.#isPrompt) this.#prompts.push(contentText(message.content));
      else this.#step(message, this.#next);
    }
    return this;
  }

  #step(message: ReportedMessage, index: number): void {
    const [open, settled] = [this.#open, this.#settled];
    if (message.role === 'assistant') open.giveUp(this.#user);
    if (message.role === 'user' && !open.areWaiting) settled.push(index);
    // Results come before other content of a message, because they answer earlier messages.
    for (const result of resultsOf(message)) {
      const item = callItem(message, result, { open, index });
      this.#items.push(item);
      if (item.from === undefined) continue;
      // A result may come late.
      while ((settled.at(-1) ?? -1) > placeOf(item.from)) settled.pop();
    }
    if (speaks(message)) {
      const { role, name, id, content } = message;
      if (role === 'user') this.#user = index;
      const text = contentText(content);
      this.#items.push({ kind: 'message', index, role, text, ...defined({ name, id, usage: usageOf(message) }) });
    }
    open.announce(callsOf(message), index);
  }
}

/**
 * Parses a harness's messages into the system prompt at the beginning, the messages, and the calls
 * with their results.
 *
 * @throws {HarnessError} `unknown-call` – a result's call was not announced
 */
export const historyOf = (messages: readonly ReportedMessage[], options: HistoryOptions = {}): History =>
  new HistoryWalk(options).on(messages).history;

/** Returns whether a list begins with another whole list, with identical message objects. */
export const beginsWith = <T>(list: readonly T[], before: readonly T[]): boolean =>
  before.length <= list.length && before.every((message, i) => message === list[i]);

/**
 * Parses the growing list of one session. If the list continues the previous one, only new messages
 * are parsed. Given messages must not change, and a message that stays must be the same object. A
 * list with another beginning is parsed as a whole.
 */
export class GrowingHistory {
  #messages: readonly ReportedMessage[] = [];
  #walk: HistoryWalk | undefined;

  /**
   * Returns the parsed list.
   * @throws {HarnessError} `unknown-call` – a result's call was not announced
   */
  of(messages: readonly ReportedMessage[]): History {
    const walk = this.#walk !== undefined && beginsWith(messages, this.#messages) ? this.#walk : new HistoryWalk({});
    // An interrupted walk cannot continue.
    this.#walk = undefined;
    const { history } = walk.on(messages);
    this.#messages = [...messages];
    this.#walk = walk;
    return history;
  }
}

/**
 * Returns the start of the running turn in a harness's list: the last user message with no call
 * open before it. All messages from there on must stay as they are. Everything earlier is closed,
 * including stopped calls. A call counts as stopped once the model has spoken after a later user
 * message. Returns undefined if there is no such message.
 */
export const startOf = ({ settled }: Pick<History, 'settled'>): number | undefined => settled.at(-1);

/**
 * Returns the start of the running turn in a list; see `startOf`.
 *
 * @throws {HarnessError} `unknown-call` – a result's call was not announced
 */
export const tailStart = (messages: readonly ReportedMessage[]): number | undefined => startOf(historyOf(messages));

/** The steps of a report's messages, by index. */
export type MessageSteps = ReadonlyMap<number, number>;

/** Returns the step of the message that made a call, if known. */
export function stepOf(call: Pick<OpenCall, 'from'> | undefined, steps: MessageSteps = new Map()): number | undefined {
  if (call?.from === undefined) return undefined;
  return 'step' in call.from ? call.from.step : steps.get(call.from.index);
}

/** Returns the calls still open after a report, with the steps of their messages. */
export function leftOpen(open: ReadonlyMap<string, OpenCall>, steps: MessageSteps): ReadonlyMap<string, OpenCall> {
  return new Map(
    [...open].map(([id, { tool, args, from }]) => {
      const step = stepOf({ ...defined({ from }) }, steps);
      return [id, { tool, args, ...(step === undefined ? {} : { from: { step } }) }];
    }),
  );
}
