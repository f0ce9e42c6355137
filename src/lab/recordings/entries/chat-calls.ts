import type { OnLoss } from '../importer.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import type { EntryOf } from '../neutral-session.js';
import { callArguments } from './call-arguments.js';
import { idAt, numberAt, objectAt, objectsAt, textAt } from './fields.js';

/** A call as chat messages carry it. */
export interface ChatCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly place: string;
}

/** The calls of an assistant's chat message: `tool_calls` of functions and of free text, and the older `function_call`. */
export function chatCalls(message: JsonObject, place: string, onLoss: OnLoss): readonly ChatCall[] {
  const listed = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  const calls = listed.flatMap((call: unknown, index): readonly ChatCall[] => {
    const here = `${place}.tool_calls[${index}]`;
    if (isJsonObject(call)) return [chatCall(call, here, onLoss)];
    onLoss({ reason: 'malformed-record', place: here, detail: `a ${call === null ? 'null' : typeof call} where a call was expected` });
    return [];
  });
  const older = objectAt(message, 'function_call');
  if (older === undefined) return calls;
  const here = `${place}.function_call`;
  return [...calls, { id: here, tool: toolName(older, here, onLoss), args: callArguments(older.arguments, here, onLoss), place: here }];
}

function toolName(named: JsonObject | undefined, place: string, onLoss: OnLoss): string {
  const name = textAt(named, 'name');
  if (name !== undefined && name !== '') return name;
  onLoss({ reason: 'malformed-record', place, detail: 'a call without the name of a tool: kept as "unknown"' });
  return 'unknown';
}

function chatCall(call: JsonObject, place: string, onLoss: OnLoss): ChatCall {
  const custom = objectAt(call, 'custom');
  const named = objectAt(call, 'function') ?? custom ?? call;
  const id = idAt(call, 'id') ?? idAt(call, 'call_id');
  if (id === undefined) onLoss({ reason: 'malformed-record', place, detail: 'a call without an id: its place stands for it' });
  const tool = toolName(named, place, onLoss);
  const args = custom === undefined ? callArguments(named.arguments ?? named.input, place, onLoss) : { input: custom.input };
  return { id: id ?? place, tool, args, place };
}

/** Tokens as an OpenAI-style answer counts them; undefined where it does not. */
export function chatUsage(answer: JsonObject | undefined): EntryOf<'message'>['usage'] {
  const usage = objectAt(answer, 'usage');
  if (usage === undefined) return undefined;
  const fields = {
    input: numberAt(usage, 'prompt_tokens') ?? numberAt(usage, 'input_tokens'),
    output: numberAt(usage, 'completion_tokens') ?? numberAt(usage, 'output_tokens'),
    cache_read: numberAt(objectAt(usage, 'prompt_tokens_details'), 'cached_tokens') ?? numberAt(usage, 'cache_read_input_tokens'),
    cache_write: numberAt(usage, 'cache_creation_input_tokens'),
    total: numberAt(usage, 'total_tokens'),
  };
  const known = Object.fromEntries(Object.entries(fields).filter(([, count]) => count !== undefined));
  return Object.keys(known).length === 0 ? undefined : known;
}

/** What a model thought, as chat messages of several providers carry it. */
export function chatThinking(message: JsonObject): string | undefined {
  const plain = textAt(message, 'reasoning_content') ?? textAt(message, 'reasoning');
  if (plain !== undefined && plain !== '') return plain;
  const blocks = objectsAt(message, 'thinking_blocks').flatMap((block) => textAt(block, 'thinking') ?? []);
  return blocks.length === 0 ? undefined : blocks.join('\n\n');
}
