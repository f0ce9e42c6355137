import type { Json } from '../objects/canonical-json.js';
import type { ModelUsage } from '../objects/step.js';
import { defined } from '../values/defined.js';
import { CALL_PARTS, contentText } from './content-text.js';
import { HarnessError } from './harness-error.js';
import type { ReportedContent, ReportedFile, ReportedMessage } from './message-schema.js';

/** A message without the calls in it. */
interface MessageItem {
  readonly kind: 'message';
  readonly role: string;
  readonly text: string;
  readonly name?: string;
  /** The harness's own id of the message. */
  readonly id?: string;
  /** What the model's call took, where it is the model's message. */
  readonly usage?: ModelUsage;
}

/** A tool call that has its result. */
export interface CallItem {
  readonly kind: 'call';
  /** Undefined where the wire gives calls no id. */
  readonly id?: string;
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly content: string;
  readonly status: 'ok' | 'fail';
  readonly files: readonly ReportedFile[];
  readonly cwd?: string;
  /** The message that made it, where one did. */
  readonly from?: NonNullable<OpenCall['from']>;
}

/** One entry of a history, in the order in which it belongs to the chat; `index` is that of the message it stood in. */
export type HistoryItem = (MessageItem | CallItem) & { readonly index: number };

/** A call that waits for its result. */
export interface OpenCall {
  readonly tool: string;
  readonly args: CallItem['args'];
  /** The message that made it: its place in the list, or, of an earlier list, the step that it became. */
  readonly from?: { readonly index: number } | { readonly step: number };
}

/** A history taken apart. */
export interface History {
  /** Undefined where the history begins without one. */
  readonly systemPrompt: string | undefined;
  readonly items: readonly HistoryItem[];
  /** Calls without a result yet, by id. */
  readonly open: ReadonlyMap<string, OpenCall>;
  /** The messages of the user that stand between no call and its result, by their places. A call without one waits until the model speaks behind a later message of the user. */
  readonly settled: readonly number[];
}

type Part = Readonly<Record<string, unknown>>;

const SYSTEM_ROLES: ReadonlySet<string> = new Set(['system', 'developer']);
const RESULT_ROLES: ReadonlySet<string> = new Set(['tool', 'toolResult', 'function']);

/** Arguments as a map: as given, or parsed from the text that the model wrote; text that is no object is kept as `raw`. */
export function argsOf(value: unknown): CallItem['args'] {
  if (value === undefined || value === null || value === '') return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as CallItem['args'];
  if (typeof value !== 'string') return { raw: value as Json };
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as CallItem['args'];
  } catch {
    // What a model wrote need not be JSON; it is kept as it is.
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

const partsOf = (content: ReportedContent | undefined): readonly Part[] => (Array.isArray(content) ? (content as readonly Part[]) : []);

/** The calls of a message, from `tool_calls` and from blocks. */
function callsOf({ tool_calls = [], content }: ReportedMessage): readonly Announced[] {
  const blocks = partsOf(content).filter(({ type }) => type === 'tool_use' || type === 'toolCall');
  return [...tool_calls, ...blocks].flatMap((call) => announcedBy(call as Part) ?? []);
}

/** The ids of the calls that a message announces, as far as they have some. */
export const announcedIds = (message: ReportedMessage): readonly string[] => callsOf(message).flatMap(({ id }) => id ?? []);

interface Result {
  readonly id: string | undefined;
  readonly content: string;
  readonly failed: boolean;
}

/** The results in a message: the message itself, or blocks in it. */
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

/** Whether a message is more than the calls or results in it. */
function speaks(message: ReportedMessage): boolean {
  if (RESULT_ROLES.has(message.role)) return false;
  const parts = partsOf(message.content);
  return parts.length === 0 || parts.some(({ type }) => !CALL_PARTS.has(String(type))) || !parts.some(({ type }) => type === 'tool_result');
}

/** What a message says of its model call; undefined where it says nothing that is known here, as in the shape of another wire. */
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

/** Where a list has the message that made a call; before its beginning, if another list had it. */
const placeOf = (from: NonNullable<OpenCall['from']>): number => ('index' in from ? from.index : -1);

/** The calls that wait for their results, while a history is walked. */
class OpenCalls {
  readonly #byId: Map<string, OpenCall>;
  #nameless: OpenCall[] = [];
  /** Calls that nobody waits for any more. */
  readonly #givenUp = new Set<string>();

  constructor(known: ReadonlyMap<string, OpenCall>) {
    this.#byId = new Map(known);
  }

  get areWaiting(): boolean {
    return this.#byId.size > this.#givenUp.size;
  }

  /** The model spoke behind a message of the user: no wire lets it while a call before that one is open, so that those were stopped. */
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

  /** The call that a result answers: by its id, else in the order of the calls that have none. */
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

/** Where a result stands: the calls that wait before it, and its message. */
interface ResultPlace {
  readonly open: OpenCalls;
  readonly index: number;
}

function callItem(
  message: ReportedMessage,
  { id, content, failed }: Result,
  { open, index }: ResultPlace,
): CallItem & { readonly index: number } {
  const named: OpenCall | undefined = textOf(message.name) === undefined ? undefined : { tool: String(message.name), args: {} };
  const call = open.take(id) ?? named;
  if (call === undefined) {
    const which = id === undefined ? 'a call without an id' : `the call ${JSON.stringify(id.slice(0, 100))}`;
    throw new HarnessError('unknown-call', `messages[${index}] is the result of ${which}, which was not reported; report the call first`);
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

/** How messages are taken apart. */
export interface HistoryOptions {
  /** Calls that were announced earlier and wait for their results. */
  readonly known?: ReadonlyMap<string, OpenCall>;
  /** Whether system messages at the beginning are the system prompt; true if left out. */
  readonly prompt?: boolean;
}

/** Messages on their way to be taken apart, one after the other. */
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

  /** What was walked so far, as it is now. */
  get history(): History {
    const systemPrompt = this.#prompts.length === 0 ? undefined : this.#prompts.join('\n\n');
    return { systemPrompt, items: [...this.#items], open: new Map(this.#open.left()), settled: [...this.#settled] };
  }

  /** Goes on with the messages behind those that it has walked. */
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
    // Results stand before whatever else a message says: they answer what was said before it.
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
 * Takes the messages of a harness apart: the system prompt at the beginning, messages, and calls joined with their results.
 *
 * @throws {HarnessError} `unknown-call` – for a result that no message announced
 */
export const historyOf = (messages: readonly ReportedMessage[], options: HistoryOptions = {}): History =>
  new HistoryWalk(options).on(messages).history;

/** Whether a list begins with the whole of another one, message by message the same object. */
export const beginsWith = <T>(list: readonly T[], before: readonly T[]): boolean =>
  before.length <= list.length && before.every((message, i) => message === list[i]);

/**
 * The list of one session, which mostly goes on where it ended before: then only what is new is taken apart. Messages that were given here do not change, and one that stayed is the same object; a
 * list that begins otherwise is taken apart as a whole.
 */
export class GrowingHistory {
  #messages: readonly ReportedMessage[] = [];
  #walk: HistoryWalk | undefined;

  /** The list taken apart. @throws {HarnessError} `unknown-call` – for a result that no message announced */
  of(messages: readonly ReportedMessage[]): History {
    const walk = this.#walk !== undefined && beginsWith(messages, this.#messages) ? this.#walk : new HistoryWalk({});
    // A walk that stops in the middle cannot go on.
    this.#walk = undefined;
    const { history } = walk.on(messages);
    this.#messages = [...messages];
    this.#walk = walk;
    return history;
  }
}

/**
 * Where the running turn begins in a harness's list: at its last message of the user before which no call waits for its result. Everything from there on
 * has to stay as it is; everything before is closed, also a call that was stopped: nobody waits for it once the model has spoken behind what the user said to it. Undefined where there is none.
 */
export const startOf = ({ settled }: Pick<History, 'settled'>): number | undefined => settled.at(-1);

/**
 * The start of the running turn in a list; see `startOf`.
 *
 * @throws {HarnessError} `unknown-call` – for a result that no message announced
 */
export const tailStart = (messages: readonly ReportedMessage[]): number | undefined => startOf(historyOf(messages));

/** The steps of a report's messages, by their places in it. */
export type MessageSteps = ReadonlyMap<number, number>;

/** The step of the message that made a call, where that is known. */
export function stepOf(call: Pick<OpenCall, 'from'> | undefined, steps: MessageSteps = new Map()): number | undefined {
  if (call?.from === undefined) return undefined;
  return 'step' in call.from ? call.from.step : steps.get(call.from.index);
}

/** Calls that wait for their results beyond a report, with the steps of their messages. */
export function leftOpen(open: ReadonlyMap<string, OpenCall>, steps: MessageSteps): ReadonlyMap<string, OpenCall> {
  return new Map(
    [...open].map(([id, { tool, args, from }]) => {
      const step = stepOf({ ...defined({ from }) }, steps);
      return [id, { tool, args, ...(step === undefined ? {} : { from: { step } }) }];
    }),
  );
}
