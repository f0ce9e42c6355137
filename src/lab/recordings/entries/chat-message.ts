import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { excerpt, notAnObject, type OnLoss } from '../importer.js';
import { parseJson } from '../json/json-text.js';
import type { EntryOf } from '../neutral-session.js';
import { idAt, listAt, numberAt, objectAt, objectsAt, textAt, usageAt } from './fields.js';

/** Returns the text of a message part, or a line that replaces it. */
type PartText = (part: JsonObject) => string | undefined;

const text: PartText = (part) => textAt(part, 'text') ?? textAt(part, 'content');

/**
 * Returns the object with the data of an image, sound or file: the message part itself, or an
 * object in it.
 */
function mediumOf(part: JsonObject): JsonObject {
  for (const name of ['source', 'image_url', 'input_audio', 'file', 'inlineData', 'fileData']) {
    const inner = part[name];
    if (isJsonObject(inner)) return inner;
    if (typeof inner === 'string') return { url: inner };
  }
  const [url] = Array.isArray(part.image_urls) ? part.image_urls : [];
  return typeof url === 'string' ? { url } : part;
}

function mediumLine(kind: string, part: JsonObject): string {
  const medium = mediumOf(part);
  const url = textAt(medium, 'url') ?? textAt(medium, 'fileUri');
  const inline = url === undefined ? undefined : /^data:([^;,]*)[^,]*,(.*)$/s.exec(url);
  const type = inline?.[1] ?? textAt(medium, 'media_type') ?? textAt(medium, 'mimeType') ?? textAt(medium, 'format');
  const data = inline?.[2] ?? textAt(medium, 'data');
  const words = [kind, ...(type === undefined || type === '' ? [] : [type])];
  if (data !== undefined) words.push(`${Buffer.byteLength(data, 'base64')} bytes`);
  else if (url !== undefined) words.push(url.slice(0, 200));
  return `[${words.join(' ')}]`;
}

const medium =
  (kind: string): PartText =>
  (part) =>
    mediumLine(kind, part);

/** Renders the kinds of parts that several formats have. */
const PARTS: Readonly<Record<string, PartText>> = {
  text,
  input_text: text,
  output_text: text,
  refusal: (part) => textAt(part, 'refusal'),
  image: medium('image'),
  image_url: medium('image'),
  input_image: medium('image'),
  input_audio: medium('audio'),
  audio: medium('audio'),
  document: medium('document'),
  file: medium('file'),
};

/** The place of a message, and the callback for losses in its content. */
export interface ContentPlace {
  readonly place: string;
  readonly onLoss: OnLoss;
  /**
   * Renders the parts that only this format has, before the common ones are tried. Returns the
   * part's text, `''` if the part becomes a separate entry, or undefined if it is unknown.
   */
  readonly other?: (part: JsonObject) => string | undefined;
}

/**
 * Returns the content of a message as the model saw it. Each text part of a list begins on a new
 * line. An image, sound or file becomes one line (`[image image/png 18234 bytes]`). An unknown part
 * becomes `[kind]` and the loss `unknown-block`.
 */
export function partsText(content: unknown, at: ContentPlace): string {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  const texts = parts.map((part, index) => {
    if (typeof part === 'string') return part;
    return partText(part, {
      ...at,
      place: Array.isArray(content) ? `${at.place}.content[${index}]` : `${at.place}.content`,
    });
  });
  return texts.filter((one, index) => one !== '' || typeof parts[index] === 'string').join('\n');
}

function partText(part: unknown, { place, onLoss, other }: ContentPlace): string {
  if (!isJsonObject(part)) {
    onLoss({ ...notAnObject(part, 'a part of a message', place), reason: 'unknown-block' });
    return part === null ? '' : String(part);
  }
  const kind = textAt(part, 'type') ?? (typeof part.text === 'string' ? 'text' : Object.keys(part)[0]) ?? '';
  const known = other?.(part) ?? ownMember(PARTS, kind)?.(part);
  if (known !== undefined) return known;
  onLoss({
    reason: 'unknown-block',
    place,
    detail: `of a part of the kind ${JSON.stringify(kind)} only the name is kept`,
  });
  return `[${kind}]`;
}

/**
 * Returns the arguments of a call, recorded as an object or as JSON text. Missing arguments and an
 * empty text give an empty object. Any other value becomes `{input: …}` and the loss
 * `unparsed-arguments`.
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

/** Returns an id for a call that has none, made from its place: `call-at-line-172`. */
export function placeAsCallId(place: string): string {
  return `call-at-${place.replace(' ', '-')}`;
}

/**
 * Removes and returns the first entry of a list for which `isWanted` is true. Undefined if there is
 * none.
 */
export function takeFirst<T>(list: T[], isWanted: (one: T) => boolean): T | undefined {
  const at = list.findIndex(isWanted);
  return at < 0 ? undefined : list.splice(at, 1)[0];
}

/** A call in a chat message. */
export interface ChatCall {
  readonly id: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly place: string;
}

/**
 * Returns the calls of an assistant's chat message. They are in `tool_calls`, with JSON or free
 * text as input, or in the older `function_call`.
 */
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
  return [
    ...calls,
    { id: here, tool: toolName(older, here, onLoss), args: callArguments(older.arguments, here, onLoss), place: here },
  ];
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
  if (id === undefined)
    onLoss({
      reason: 'malformed-record',
      place,
      detail: 'a call without an id: its place in the recording is used instead',
    });
  const tool = toolName(named, place, onLoss);
  const args =
    custom === undefined ? callArguments(named.arguments ?? named.input, place, onLoss) : { input: custom.input };
  return { id: id ?? place, tool, args, place };
}

/**
 * Converts a record of OpenAI's Responses API to a chat message. It may be a whole response
 * (`{object: 'response', output}`) or the output of a call. Other records are returned unchanged.
 */
export function asChatMessage(
  record: JsonObject,
  { place, onLoss }: Pick<ContentPlace, 'place' | 'onLoss'>,
): JsonObject {
  if (record.type === 'function_call_output')
    return { ...record, role: 'tool', tool_call_id: record.call_id, content: record.output };
  if (record.object !== 'response' || !Array.isArray(record.output)) return record;
  const [texts, thoughts, calls]: [unknown[], string[], JsonObject[]] = [[], [], []];
  for (const [index, item] of record.output.entries()) {
    const type = isJsonObject(item) ? textAt(item, 'type') : undefined;
    if (isJsonObject(item) && type === 'message')
      texts.push(...(Array.isArray(item.content) ? item.content : [item.content]));
    else if (isJsonObject(item) && type === 'reasoning') {
      const parts = [...objectsAt(item, 'summary'), ...objectsAt(item, 'content')];
      thoughts.push(...parts.flatMap((part) => textAt(part, 'text') ?? []));
    } else if (isJsonObject(item) && type === 'function_call') calls.push({ ...item, id: item.call_id ?? item.id });
    else {
      const detail = `an item of the kind ${JSON.stringify(excerpt(type ?? String(item)))}: left out`;
      onLoss({ reason: 'unknown-block', place: `${place}.output[${index}]`, detail });
    }
  }
  const reasoning = thoughts.length === 0 ? {} : { reasoning: thoughts.join('\n') };
  return { ...record, role: 'assistant', content: texts, tool_calls: calls, ...reasoning };
}

/** Returns whether a record has a role or content. If not, reports a loss. */
export function saysSomething(record: JsonObject, { place, onLoss }: Pick<ContentPlace, 'place' | 'onLoss'>): boolean {
  if (typeof record.role === 'string' || (record.content !== undefined && record.content !== null)) return true;
  const fields = excerpt(Object.keys(record).join(', '));
  onLoss({
    reason: 'unknown-record',
    place,
    detail: `neither a role nor a content, only ${fields || 'no field'}: left out`,
  });
  return false;
}

/** Returns the token counts of an answer in OpenAI's format. Undefined if it has none. */
export function chatUsage(answer: JsonObject | undefined): EntryOf<'message'>['usage'] {
  const usage = objectAt(answer, 'usage');
  const details = objectAt(usage, 'prompt_tokens_details') ?? objectAt(usage, 'input_tokens_details');
  const cached = numberAt(details, 'cached_tokens');
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

/**
 * Returns the thoughts in a chat message. Providers use different fields for them. Undefined if
 * there are none.
 */
export function chatThinking(message: JsonObject): string | undefined {
  const plain = textAt(message, 'reasoning_content') ?? textAt(message, 'reasoning');
  if (plain !== undefined && plain !== '') return plain;
  const blocks = objectsAt(message, 'thinking_blocks').flatMap((block) => textAt(block, 'thinking') ?? []);
  return blocks.length === 0 ? undefined : blocks.join('\n\n');
}
