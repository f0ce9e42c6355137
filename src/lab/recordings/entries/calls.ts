import type { OnLoss } from '../importer.js';
import { isJsonObject, type JsonObject, parseJson } from '../json/json-text.js';
import type { EntryOf } from '../neutral-session.js';
import { idAt, listAt, numberAt, objectAt, objectsAt, textAt, usageAt } from './fields.js';
import { excerpt, notAnObject } from './losses.js';

/**
 * The arguments of a call, which a recording holds as an object or as JSON text. Anything else becomes `{input: …}` and the loss `unparsed-arguments`; no
 * value and an empty text mean no arguments.
 */
export function callArguments(given: unknown, place: string, onLoss: OnLoss): JsonObject {
  if (given === undefined || given === null || given === '') return {};
  if (isJsonObject(given)) return given;
  const parsed = typeof given === 'string' ? parseJson(given) : undefined;
  if (isJsonObject(parsed)) return parsed;
  const shown = typeof given === 'string' ? given : JSON.stringify(given);
  onLoss({ reason: 'unparsed-arguments', place, detail: `no JSON object: ${excerpt(shown)}` });
  return { input: given };
}

/** The id of a call that has none in its recording, made from its place: `call-at-line-172`. */
export function placeAsCallId(place: string): string {
  return `call-at-${place.replace(' ', '-')}`;
}

/** A call in a chat message. */
export interface ChatCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly place: string;
}

/** The calls of an assistant's chat message: `tool_calls` of functions and of free text, and the older `function_call`. */
export function chatCalls(message: JsonObject, place: string, onLoss: OnLoss): readonly ChatCall[] {
  const calls = listAt(message, 'tool_calls').flatMap((call, index): readonly ChatCall[] => {
    const here = `${place}.tool_calls[${index}]`;
    if (isJsonObject(call)) return [chatCall(call, here, onLoss)];
    onLoss(notAnObject(call, 'a call', here));
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

/** The token counts of an OpenAI-style answer; undefined where it has none. */
export function chatUsage(answer: JsonObject | undefined): EntryOf<'message'>['usage'] {
  const usage = objectAt(answer, 'usage');
  const cached = numberAt(objectAt(usage, 'prompt_tokens_details'), 'cached_tokens');
  const provider = usageAt(usage, {
    input: 'input_tokens',
    output: 'output_tokens',
    cache_read: 'cache_read_input_tokens',
    cache_write: 'cache_creation_input_tokens',
    total: 'total_tokens',
  });
  const chat = usageAt(usage, { input: 'prompt_tokens', output: 'completion_tokens' });
  if (provider === undefined && chat === undefined && cached === undefined) return undefined;
  return { ...provider, ...chat, ...(cached === undefined ? {} : { cache_read: cached }) };
}

/** The thoughts in a chat message, as several providers put them there; undefined where it has none. */
export function chatThinking(message: JsonObject): string | undefined {
  const plain = textAt(message, 'reasoning_content') ?? textAt(message, 'reasoning');
  if (plain !== undefined && plain !== '') return plain;
  const blocks = objectsAt(message, 'thinking_blocks').flatMap((block) => textAt(block, 'thinking') ?? []);
  return blocks.length === 0 ? undefined : blocks.join('\n\n');
}
