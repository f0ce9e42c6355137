import type { Json } from '../../objects/canonical-json.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import type { PlannedCall, PlannedStep } from './planned-step.js';

/** The fields of a checked line of `messages.jsonl`. */
export type Fields = Readonly<Record<string, unknown>>;

/** A call that a message or an event announced. */
export interface AnnouncedCall {
  readonly id: string;
  /** The call's id as a valid name. Results refer to the call by it. */
  readonly name: string;
  readonly tool: string;
  readonly args: PlannedCall['args'];
  /** The index of the planned step with the call's message. */
  readonly by?: number | undefined;
  /** The number of planned steps before the call. */
  readonly behind?: number;
}

/** The steps and calls read from a directory's messages. */
export interface ReadMessages {
  readonly steps: readonly PlannedStep[];
  /** The system messages before all other messages. */
  readonly leading: readonly string[];
  /** Calls without results. */
  readonly open: readonly AnnouncedCall[];
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/**
 * Parses a call's arguments, given as JSON text or as a value. Keeps values that are not objects.
 */
export function argumentsOf(value: unknown): PlannedCall['args'] {
  let args = value;
  if (typeof value === 'string') {
    try {
      args = JSON.parse(value);
    } catch {
      // Some programs write plain text here instead of JSON.
    }
  }
  if (isJsonObject(args)) return args as PlannedCall['args'];
  return args === undefined || args === '' ? {} : { arguments: args as Json };
}

/** Returns the calls that a message announces, in our form or that of the common model APIs. */
function announcedIn(calls: unknown): readonly AnnouncedCall[] {
  if (!Array.isArray(calls)) return [];
  return calls.filter(isJsonObject).flatMap((call): readonly AnnouncedCall[] => {
    const inner = isJsonObject(call.function) ? call.function : call;
    const [name, tool] = [textOf(call.id), textOf(call.own_name) ?? textOf(inner.name)];
    if (name === undefined || name === '' || tool === undefined || tool === '') return [];
    return [
      { id: textOf(call.own_id) ?? name, name, tool, args: argumentsOf(inner.arguments ?? inner.args ?? inner.input) },
    ];
  });
}

interface LineContent {
  /** Undefined if the line holds only results. */
  readonly text: string | undefined;
  readonly results: readonly { readonly id: string | undefined; readonly content: string }[];
}

function contentOf({ role, content, tool_call_id: call }: Fields): LineContent {
  if (typeof content === 'string')
    return role === 'tool'
      ? { text: undefined, results: [{ id: textOf(call), content }] }
      : { text: content, results: [] };
  const parts = (Array.isArray(content) ? content : []).filter(isJsonObject);
  const results = parts.flatMap((part) =>
    part.type === 'tool_result' ? [{ id: textOf(part.tool_call_id), content: textOf(part.content) ?? '' }] : [],
  );
  const said = parts.flatMap((part) => {
    if (part.type === 'text') return [textOf(part.text) ?? ''];
    return part.type === 'image' ? [`[image ${textOf(part.path) ?? ''}]`] : [];
  });
  return { text: said.length === 0 && results.length > 0 ? undefined : said.join('\n'), results };
}

/** Converts the lines of `messages.jsonl` to steps of a session, in order. */
class MessageReader {
  readonly steps: PlannedStep[] = [];
  readonly leading: string[] = [];
  /** Pending calls, by the names that results use for them. */
  readonly #open = new Map<string, AnnouncedCall[]>();
  readonly #told: ReadonlyMap<string, readonly AnnouncedCall[]>;
  readonly #answered = new Map<string, number>();
  readonly #hasPrompt: boolean;
  #isBeginning = true;

  constructor(told: ReadonlyMap<string, readonly AnnouncedCall[]>, hasPrompt: boolean) {
    this.#told = told;
    this.#hasPrompt = hasPrompt;
  }

  get open(): readonly AnnouncedCall[] {
    return [...this.#open.values()].flat();
  }

  line(line: number, fields: Fields): void {
    const { text, results } = contentOf(fields);
    const role = textOf(fields.own_role) ?? String(fields.role);
    if (this.#isBeginning && !this.#hasPrompt && fields.role === 'system' && text !== undefined) {
      this.leading.push(text);
      return;
    }
    this.#isBeginning = false;
    for (const result of results) this.#result(line, fields, result);
    const calls = announcedIn(fields.tool_calls);
    // A line with calls and no text adds no message. Its calls belong to the previous message.
    const isSaid = text !== undefined && !(text === '' && calls.length > 0);
    const message = {
      role,
      text: (text ?? '').toWellFormed(),
      ...defined({ name: textOf(fields.name)?.toWellFormed() }),
    };
    if (isSaid) this.steps.push({ lines: [line], message, native: textOf(fields.own_id)?.toWellFormed() });
    const by = isSaid && calls.length > 0 ? this.steps.length - 1 : undefined;
    for (const call of calls) {
      const waiting = this.#open.get(call.name);
      const one = { ...call, by, behind: this.steps.length };
      if (waiting === undefined) this.#open.set(call.name, [one]);
      else waiting.push(one);
    }
  }

  #result(
    line: number,
    fields: Fields,
    { id, content }: { readonly id: string | undefined; readonly content: string },
  ): void {
    const call = this.#callOf(id);
    this.steps.push({
      lines: [line],
      call: {
        id: call?.id ?? id,
        tool: call?.tool ?? 'unknown',
        args: call?.args ?? {},
        status: fields.status === 'fail' ? 'fail' : 'ok',
        content: fields.has_text === false && content === '' ? null : content.toWellFormed(),
        by: call?.by,
      },
    });
  }

  /**
   * Returns the call that a result answers: a call announced by a message, or else by the events. A
   * result without an id answers the oldest pending call.
   */
  #callOf(id: string | undefined): AnnouncedCall | undefined {
    const name = id ?? this.#open.keys().next().value;
    if (name === undefined) return undefined;
    const waiting = this.#open.get(name);
    const times = this.#answered.get(name) ?? 0;
    this.#answered.set(name, times + 1);
    const call = waiting?.shift() ?? this.#told.get(name)?.[times];
    if (waiting?.length === 0) this.#open.delete(name);
    return call;
  }
}

/**
 * Converts the lines of a `messages.jsonl` to steps. Lines are numbered from `first`. A result
 * without an announced call gets a call of the tool `unknown` without arguments, so no result is
 * dropped.
 */
export function readMessages(
  lines: readonly string[],
  {
    first = 1,
    told,
    hasPrompt,
  }: {
    readonly first?: number;
    readonly told: ReadonlyMap<string, readonly AnnouncedCall[]>;
    readonly hasPrompt: boolean;
  },
): ReadMessages {
  const reader = new MessageReader(told, hasPrompt);
  for (const [i, line] of lines.entries()) reader.line(first + i, JSON.parse(line) as Fields);
  const { steps, leading, open } = reader;
  return { steps, leading, open };
}
