import type { EpochInput } from '../assembly/epoch/epoch-state.js';
import type { ShownByTail } from '../assembly/epoch/plan-note.js';
import { showsText } from '../assembly/shown-text.js';
import { type ReadCall, readText } from '../foreign-tools/read-output.js';
import { type Replacement, replaced } from '../foreign-tools/text-edits.js';
import { type ToolArguments, textArgument } from '../foreign-tools/tool-arguments.js';
import { foreignTool, type ToolKind } from '../foreign-tools/tool-table.js';
import type { KeptList } from '../objects/assembly-proof.js';
import { hashText } from '../objects/hashes.js';
import type { ObjectId } from '../objects/ids.js';
import { type CallItem, historyOf } from './history-item.js';
import type { ReportedMessage } from './message-schema.js';
import type { PlacedEntry } from './reported-chat.js';

interface MessagePrint {
  readonly sha256: string;
  readonly chars: number;
}

const known = new WeakMap<ReportedMessage, MessagePrint>();

/** What a model is shown of a message; its ids and what is told of its files and costs are not. */
function printOf(message: ReportedMessage): MessagePrint {
  const before = known.get(message);
  if (before !== undefined) return before;
  const { role, name, content, tool_calls, tool_call_id, toolCallId, is_error, isError } = message;
  const text = JSON.stringify([role, name, content, tool_calls, tool_call_id ?? toolCallId, is_error ?? isError]);
  const print = { sha256: hashText(text.toWellFormed()), chars: text.length };
  known.set(message, print);
  return print;
}

/** About how long the messages from one on are, in UTF-16 units; reasoning is not reported. */
export const messageChars = (messages: readonly ReportedMessage[], from: number): number =>
  messages.slice(from).reduce((chars, message) => chars + printOf(message).chars, 0);

/** The messages from one on, as a record names them. */
export function keptList(messages: readonly ReportedMessage[], from: number, count = messages.length - from): KeptList {
  const prints = messages.slice(from, from + count).map((message) => printOf(message).sha256);
  return { from, count, sha256: hashText(prints.join('\n')) };
}

type TailCall = CallItem & { readonly index: number; readonly ref: ObjectId };

/** The calls from a message on whose results the list has, with their objects. */
function callsFrom(messages: readonly ReportedMessage[], placed: readonly PlacedEntry[], from: number): readonly TailCall[] {
  const refs = new Map<number, ObjectId[]>();
  for (const { kind, index, callId } of placed) {
    if (kind !== 'call' || callId === undefined || index < from) continue;
    refs.set(index, [...(refs.get(index) ?? []), callId]);
  }
  return historyOf(messages).items.flatMap((item) => {
    const ref = item.kind === 'call' ? refs.get(item.index)?.shift() : undefined;
    return item.kind === 'call' && ref !== undefined ? [{ ...item, ref }] : [];
  });
}

function replacementOf(args: ToolArguments): Replacement | undefined {
  const from = textArgument(args, 'oldText');
  return from === undefined
    ? undefined
    : { from, to: textArgument(args, 'newText') ?? '', all: args.replace_all === true || args.replaceAll === true };
}

/** What a call made of a file's text by its arguments alone; undefined where they do not say. */
const MADE: Readonly<Partial<Record<ToolKind, (args: ToolArguments, before: string | undefined) => string | undefined>>> = {
  write: (args) => textArgument(args, 'content'),
  edit: (args, before) => {
    const given: readonly unknown[] = Array.isArray(args.edits) && args.edits.length > 0 ? args.edits : [args];
    const each = given.flatMap((one) => (typeof one === 'object' && one !== null ? (replacementOf(one as ToolArguments) ?? []) : []));
    return before === undefined || each.length < given.length ? undefined : replaced(before, each);
  },
};

/** The text of a file after some calls, as their results and arguments show it. */
function textAfter(calls: readonly TailCall[], text: string, before: string | undefined): string | undefined {
  let shown = before;
  for (const { tool, args, content, status } of calls) {
    if (status === 'fail') continue;
    const made = MADE[foreignTool(tool).kind];
    if (made !== undefined) shown = made(args, shown) ?? shown;
    else if (showsText(content, text)) shown = text;
  }
  return shown;
}

/** The whole text of a file, where a read answered that alone. */
function wholeRead(call: ReadCall): string | undefined {
  const { text, whole } = readText(call) ?? {};
  return whole === true ? text : undefined;
}

/** The messages of an epoch that stay as they are, as a harness sends them again. */
export interface KeptMessages {
  readonly list: KeptList;
  /** What they show of the session's objects. */
  readonly shown: (input: EpochInput) => ShownByTail;
}

/**
 * The messages that stay, where the list begins as it did: undefined where it does not, where a result's call is not among them, and where a model has spoken more than
 * once since the last request. Then one of its calls had the harness's own list, and what it thought there is bound to another beginning.
 */
export function keptMessages(
  { messages, placed }: { readonly messages: readonly ReportedMessage[]; readonly placed: readonly PlacedEntry[] },
  list: KeptList,
): KeptMessages | undefined {
  const { from, count, sha256 } = list;
  if (messages.length < from + count || keptList(messages, from, count).sha256 !== sha256) return undefined;
  if (messages.slice(from + count).filter(({ role }) => role === 'assistant').length > 1) return undefined;
  const calls = callsFrom(messages, placed, from);
  // A result that comes late would stand there without its call.
  if (calls.some(({ from: made }) => made !== undefined && 'index' in made && made.index < from)) return undefined;
  const shown = (input: EpochInput): ShownByTail => {
    const files = new Map(input.pool.flatMap((one) => (one.type === 'toolcall' ? [[one.id, one.fileRefs] as const] : [])));
    return {
      count: messages.length - from,
      results: new Set(calls.map(({ ref }) => ref)),
      reads: calls.flatMap(({ tool, args, status, content: output, index, ref }) =>
        status === 'ok' && foreignTool(tool).kind === 'read'
          ? [{ call: ref, output, whole: () => wholeRead({ args, output, truncated: false }), isNew: index >= from + count }]
          : [],
      ),
      shows: ({ id }, text, before) => {
        const about = calls.filter(
          ({ ref, index }) => files.get(ref)?.includes(id) === true && (before === undefined || index >= from + count),
        );
        return textAfter(about, text, before) === text;
      },
    };
  };
  return { list: keptList(messages, from), shown };
}
