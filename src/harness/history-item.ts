import type { Json } from '../objects/canonical-json.js';
import type { ModelUsage } from '../objects/step.js';
import { defined } from '../values/defined.js';
import { CALL_PARTS, contentText } from './content-text.js';
import { HarnessError } from './harness-error.js';
import type { ReportedContent, ReportedFile, ReportedMessage } from './message-schema.js';

/** A message without the calls that it makes. */
interface MessageItem {
  readonly kind: 'message';
  readonly role: string;
  readonly text: string;
  readonly name?: string;
  /** The message's id in the harness. */
  readonly id?: string;
  /** Token counts of the model call, if the message is an answer. */
  readonly usage?: ModelUsage;
}

/** A tool call and its result. */
export interface CallItem {
  readonly kind: 'call';
  /** Undefined if the provider's API has no call ids. */
  readonly id?: string;
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly content: string;
  readonly status: 'ok' | 'fail';
  readonly files: readonly ReportedFile[];
  readonly cwd?: string;
  /** The message that made the call, if there is one. */
  readonly from?: NonNullable<OpenCall['from']>;
}

/** An entry of a history, in the order of the chat. `index` is the index of its message. */
export type HistoryItem = (MessageItem | CallItem) & { readonly index: number };

/** A call that has no result yet. */
export interface OpenCall {
  readonly tool: string;
  readonly args: CallItem['args'];
  /**
   * The message that made the call: its index in this list, or its step if it was in an earlier
   * list.
   */
  readonly from?: { readonly index: number } | { readonly step: number };
}

/** The contents of a list of messages. */
export interface History {
  /** Undefined if the list does not begin with system messages. */
  readonly systemPrompt: string | undefined;
  readonly items: readonly HistoryItem[];
  /** Calls that have no result yet, by id. */
  readonly open: ReadonlyMap<string, OpenCall>;
  /**
   * Indexes of the user messages that no open call precedes. A call without a result is open until
   * the model writes a message after a later message of the user.
   */
  readonly settled: readonly number[];
}

type Part = Readonly<Record<string, unknown>>;

const SYSTEM_ROLES: ReadonlySet<string> = new Set(['system', 'developer']);
const RESULT_ROLES: ReadonlySet<string> = new Set(['tool', 'toolResult', 'function']);

/**
 * Returns a call's arguments as an object, as given or parsed from the model's text. A text that is
 * not a JSON object is stored in `raw`.
 */
export function argsOf(value: unknown): CallItem['args'] {
  if (value === undefined || value === null || value === '') return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as CallItem['args'];
  if (typeof value !== 'string') return { raw: value as Json };
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as CallItem['args'];
  } catch {
    // The model's text need not be JSON. Then it is stored unchanged in `raw`.
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

/** Returns the calls that a message makes, in `tool_calls` or in blocks. */
function callsOf({ tool_calls = [], content }: ReportedMessage): readonly Announced[] {
  const blocks = partsOf(content).filter(({ type }) => type === 'tool_use' || type === 'toolCall');
  return [...tool_calls, ...blocks].flatMap((call) => announcedBy(call as Part) ?? []);
}

/** Returns the ids of the calls that a message makes. Calls without an id are left out. */
export const announcedIds = (message: ReportedMessage): readonly string[] =>
  callsOf(message).flatMap(({ id }) => id ?? []);

interface Result {
  readonly id: string | undefined;
  readonly content: string;
  readonly failed: boolean;
}

/** Returns the results in a message: the message itself, or some of its blocks. */
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

/** Returns whether a message has more content than calls and results. */
function speaks(message: ReportedMessage): boolean {
  if (RESULT_ROLES.has(message.role)) return false;
  const parts = partsOf(message.content);
  return (
    parts.length === 0 ||
    parts.some(({ type }) => !CALL_PARTS.has(String(type))) ||
    !parts.some(({ type }) => type === 'tool_result')
  );
}

/** Returns the token counts of a message's model call. Undefined if no count has a known form. */
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

/** The calls without a result, while a history is parsed. */
class OpenCalls {
  readonly #byId: Map<string, OpenCall>;
  #nameless: OpenCall[] = [];
  /** Ids of the calls that were stopped. */
  readonly #givenUp = new Set<string>();

  constructor(known: ReadonlyMap<string, OpenCall>) {
    this.#byId = new Map(known);
  }

  get areWaiting(): boolean {
    return this.#byId.size > this.#givenUp.size;
  }

  /**
   * Marks earlier calls as stopped, once the model writes a message after one of the user. No
   * provider's API allows such a message while a call is open.
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

  /**
   * Removes and returns the call of a result: the one with its id, or the first one without an id.
   */
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

/**
 * The position of a result: the index of its message, and the calls that are open at that message.
 */
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

/** Options for parsing messages. */
export interface HistoryOptions {
  /** Calls of earlier lists that have no result yet. */
  readonly known?: ReadonlyMap<string, OpenCall>;
  /** Whether system messages at the beginning are the system prompt. Default: true. */
  readonly prompt?: boolean;
}

/** Parses messages one by one. */
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

  /** The history of the messages that were parsed so far. */
  get history(): History {
    const systemPrompt = this.#prompts.length === 0 ? undefined : this.#prompts.join('\n\n');
    return { systemPrompt, items: [...this.#items], open: new Map(this.#open.left()), settled: [...this.#settled] };
  }

  /** Parses the messages that were not parsed yet. */
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
    // A message's results precede its other content, because they belong to earlier messages.
    for (const result of resultsOf(message)) {
      const item = callItem(message, result, { open, index });
      this.#items.push(item);
      if (item.from === undefined) continue;
      // A late result shows that its call was open when these user messages were sent.
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
 * Parses a harness's messages into a system prompt, messages, and calls with their results.
 *
 * @throws {HarnessError} `unknown-call` – no message made the call of a result
 */
export const historyOf = (messages: readonly ReportedMessage[], options: HistoryOptions = {}): History =>
  new HistoryWalk(options).on(messages).history;

/** Returns whether a list begins with all of another list, as the same message objects. */
export const beginsWith = <T>(list: readonly T[], before: readonly T[]): boolean =>
  before.length <= list.length && before.every((message, i) => message === list[i]);

/**
 * Parses the growing list of one session. If the list continues the previous one, only new messages
 * are parsed. Messages must not change, and an unchanged message must be the same object. A list
 * that does not continue the previous one is parsed from its start.
 */
export class GrowingHistory {
  #messages: readonly ReportedMessage[] = [];
  #walk: HistoryWalk | undefined;

  /**
   * Returns the parsed list.
   * @throws {HarnessError} `unknown-call` – no message made the call of a result
   */
  of(messages: readonly ReportedMessage[]): History {
    const walk = this.#walk !== undefined && beginsWith(messages, this.#messages) ? this.#walk : new HistoryWalk({});
    // The state is removed during parsing, because it must not be used again after a failure.
    this.#walk = undefined;
    const { history } = walk.on(messages);
    this.#messages = [...messages];
    this.#walk = walk;
    return history;
  }
}

/**
 * Returns where the running turn starts in a harness's list: at the last message of the user that
 * no open call precedes. The messages from that one to the end must not change. Stopped calls are
 * not open. A call was stopped if the model wrote a message after a later message of the user.
 * Undefined if there is no such message.
 */
export const startOf = ({ settled }: Pick<History, 'settled'>): number | undefined => settled.at(-1);

/**
 * Returns where the running turn starts in a list; see `startOf`.
 *
 * @throws {HarnessError} `unknown-call` – no message made the call of a result
 */
export const tailStart = (messages: readonly ReportedMessage[]): number | undefined => startOf(historyOf(messages));

/** The steps in which a report's messages were recorded, by index. */
export type MessageSteps = ReadonlyMap<number, number>;

/** Returns the step of the message that made a call, if known. */
export function stepOf(call: Pick<OpenCall, 'from'> | undefined, steps: MessageSteps = new Map()): number | undefined {
  if (call?.from === undefined) return undefined;
  return 'step' in call.from ? call.from.step : steps.get(call.from.index);
}

/**
 * Returns the calls that are open after a report. Their messages are given by steps, so that later
 * lists can refer to them.
 */
export function leftOpen(open: ReadonlyMap<string, OpenCall>, steps: MessageSteps): ReadonlyMap<string, OpenCall> {
  return new Map(
    [...open].map(([id, { tool, args, from }]) => {
      const step = stepOf({ ...defined({ from }) }, steps);
      return [id, { tool, args, ...(step === undefined ? {} : { from: { step } }) }];
    }),
  );
}
