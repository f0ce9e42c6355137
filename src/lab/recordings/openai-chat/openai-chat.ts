import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { chatCalls, chatThinking, chatUsage, partsText, saysSomething, takeFirst } from '../entries/chat-message.js';
import { type EntryCommon, entryCommon, idAt, momentOf, numberAt, roleAt, textAt } from '../entries/fields.js';
import { type Importer, notAnObject, type OnLoss, type RecordingSource, unknownRole } from '../importer.js';
import { documentItems } from '../json/json-document.js';
import { readJsonLines } from '../json/json-lines.js';
import { headObject, headObjects, recordingHead, recordingId } from '../json/recording-head.js';
import type { RecordedEntry } from '../neutral-session.js';

/** Times below this value are in seconds, others in milliseconds. */
const LAST_SECOND = 1e11;

function momentIn(message: JsonObject): number | undefined {
  const given = message.timestamp ?? message.created_at ?? message.created;
  return typeof given === 'number' && given < LAST_SECOND ? Math.round(given * 1000) : momentOf(given);
}

/** The conversation whose messages are being read. */
interface Conversation {
  readonly id: string;
  /** The conversation's number in the recording. */
  readonly key: number;
  readonly place: string;
  /** Whether the session entry has been yielded. */
  begun: boolean;
  /** Calls without a result. */
  readonly open: { readonly id: string; readonly tool: string }[];
}

/**
 * Converts the messages of conversations, one conversation after another, to entries. The first
 * message of each conversation also gives its session entry.
 */
class Conversations {
  readonly #id: string;
  readonly #several: boolean;
  readonly #onLoss: OnLoss;
  #current: Conversation | undefined;

  /**
   * With `several` conversations, a session's id is the recording's id followed by the
   * conversation's key.
   */
  constructor(id: string, several: boolean, onLoss: OnLoss) {
    this.#id = id;
    this.#several = several;
    this.#onLoss = onLoss;
  }

  /** Yields the entries of a message. `key` is the number of its conversation. */
  *message(key: number, message: unknown, place: string): Iterable<RecordedEntry> {
    if (this.#current?.key !== key) yield* this.end();
    this.#current ??= { id: this.#several ? `${this.#id}-${key}` : this.#id, key, place, begun: false, open: [] };
    const current = this.#current;
    if (!isJsonObject(message)) {
      this.#onLoss(notAnObject(message, 'a message', place));
      return;
    }
    if (!saysSomething(message, { place, onLoss: this.#onLoss })) return;
    const role = textAt(message, 'role');
    const prompt = !current.begun && (role === 'system' || role === 'developer');
    if (!current.begun) yield this.#opening(current, prompt ? this.#text(message, place) : undefined);
    if (prompt) return;
    const common = entryCommon({ session: current.id, place }, message, momentIn(message));
    if (role === 'tool' || role === 'function') yield this.#result(message, common, current);
    else yield* this.#said(message, common, current);
  }

  /** Ends the current conversation. Yields its session entry even if it had no message. */
  *end(): Iterable<RecordedEntry> {
    if (this.#current?.begun === false) yield this.#opening(this.#current, undefined);
    this.#current = undefined;
  }

  #opening(current: Conversation, system_prompt: string | undefined): RecordedEntry {
    current.begun = true;
    return { kind: 'session', format: 'openai-chat', native_id: current.id, place: current.place, system_prompt };
  }

  #text(message: JsonObject, place: string): string {
    return partsText(message.content, { place, onLoss: this.#onLoss });
  }

  *#said(message: JsonObject, common: EntryCommon, { open }: Conversation): Iterable<RecordedEntry> {
    const role = roleAt(message);
    if (role === undefined) this.#onLoss(unknownRole(message.role, common.place));
    const origin = role === 'assistant' ? 'model' : role === 'user' ? 'person' : 'harness';
    const refusal = textAt(message, 'refusal') ?? '';
    const text = [this.#text(message, common.place), refusal].filter((part) => part !== '').join('\n');
    const calls = chatCalls(message, common.place, this.#onLoss);
    const more = role === 'assistant' ? { thinking: chatThinking(message), usage: chatUsage(message) } : {};
    const name = idAt(message, 'name');
    yield { ...common, kind: 'message', role: role ?? 'user', origin, text, ...more, name };
    for (const { id, tool, args, place } of calls) {
      open.push({ id, tool });
      yield { ...common, kind: 'call', place, call_id: id, tool, args };
    }
  }

  #result(message: JsonObject, common: EntryCommon, { open }: Conversation): RecordedEntry {
    const { place } = common;
    const id = idAt(message, 'tool_call_id');
    const tool = textAt(message, 'name');
    const call = takeFirst(open, (one) => (id === undefined ? tool === undefined || one.tool === tool : one.id === id));
    if (id === undefined && message.role === 'tool') {
      this.#onLoss({
        reason: 'malformed-record',
        place,
        detail: 'a result without the id of its call: assigned to the oldest open call',
      });
    }
    const text = this.#text(message, place);
    const is_error = message.is_error === true || numberAt(message, 'exit_code') === 1 || /^Error\b/.test(text);
    return { ...common, kind: 'result', call_id: call?.id ?? id ?? place, text, is_error };
  }
}

const MESSAGE_ROLE = /^(?:system|developer|user|assistant|tool|function)$/;
/** Fields of an object that may hold its messages. */
const LISTS = ['messages', 'traj', 'conversation', 'trajectory'] as const;

const isMessage = (record: unknown): boolean =>
  isJsonObject(record) &&
  MESSAGE_ROLE.test(textAt(record, 'role') ?? '') &&
  ('content' in record || 'tool_calls' in record || 'function_call' in record);

/** Returns the field of an object that holds its messages. Undefined if there is none. */
function listIn(row: JsonObject | undefined): (typeof LISTS)[number] | undefined {
  return LISTS.find((name) => Array.isArray(row?.[name]) && isMessage(row[name][0]));
}

function recognise(source: RecordingSource): number {
  const { value, several } = recordingHead(source);
  if (isJsonObject(value)) return listIn(value) !== undefined ? 0.5 : several && isMessage(value) ? 0.4 : 0;
  const [first] = headObjects(value);
  if (first === undefined) return 0;
  return listIn(first) !== undefined ? 0.6 : isMessage(first) ? 0.5 : 0;
}

async function* readLines(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const rows = listIn(headObject(source)) !== undefined;
  const conversations = new Conversations(recordingId(source), rows, onLoss);
  for await (const { record, place, line } of readJsonLines(source.open(), onLoss)) {
    const list = listIn(record);
    const messages = list === undefined ? undefined : record[list];
    if (Array.isArray(messages)) {
      for (const [index, message] of messages.entries())
        yield* conversations.message(line, message, `${place}.${list}[${index}]`);
    } else if (typeof record.role === 'string') yield* conversations.message(rows ? line : 0, record, place);
    else onLoss({ reason: 'unknown-record', place, detail: 'neither a message nor a list of messages: left out' });
  }
  yield* conversations.end();
}

/**
 * Returns the patterns that select the messages in a document (`*`, `messages.*`, `*.traj.*`), and
 * whether they belong to several conversations.
 */
function shapeOf(source: RecordingSource): { readonly items: readonly string[]; readonly several: boolean } {
  const { value } = recordingHead(source);
  if (isJsonObject(value)) return { items: [`${listIn(value) ?? 'messages'}.*`], several: false };
  const list = listIn(headObjects(value)[0]);
  return list === undefined
    ? { items: ['*'], several: false }
    : { items: LISTS.map((name) => `*.${name}.*`), several: true };
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  if (recordingHead(source).several) {
    yield* readLines(source, onLoss);
    return;
  }
  const { items, several } = shapeOf(source);
  const conversations = new Conversations(recordingId(source), several, onLoss);
  for await (const { path, place, value } of documentItems(source.open(), { items }, onLoss)) {
    yield* conversations.message(several ? Number(path[0]) : 0, value, path.length === 1 ? `messages${place}` : place);
  }
  yield* conversations.end();
}

/**
 * Reads chats in OpenAI's format: a list of messages, an object with `messages`, or a container of
 * several conversations. Each conversation is a session. Also reads tau-bench's `traj`, and any of
 * these as JSON lines.
 *
 * Results are matched to calls by `tool_call_id`, or otherwise by order.
 */
export const openAiChat: Importer = { format: 'openai-chat', recognise, read };
