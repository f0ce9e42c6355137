import { textAt } from '../entries/fields.js';
import { recordingId } from '../entries/recording-id.js';
import type { Importer, OnLoss, RecordingSource } from '../importer.js';
import type { DocumentItem } from '../json/document-walk.js';
import { documentItems } from '../json/json-document.js';
import { readJsonLines } from '../json/json-lines.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import { headObject, headObjects, recordingHead } from '../json/recording-head.js';
import type { RecordedEntry } from '../neutral-session.js';
import { ChatMessages } from './openai-messages.js';

const ROLES = /^(?:system|developer|user|assistant|tool|function)$/;
/** Under which names a list of messages stands in a row. */
const LISTS = ['messages', 'traj', 'conversation', 'trajectory'] as const;

const isMessage = (record: unknown): boolean =>
  isJsonObject(record) &&
  ROLES.test(textAt(record, 'role') ?? '') &&
  ('content' in record || 'tool_calls' in record || 'function_call' in record);

/** The list of messages that a row has, by its name. */
function listIn(row: JsonObject | undefined): (typeof LISTS)[number] | undefined {
  return LISTS.find((name) => Array.isArray(row?.[name]) && isMessage(row[name][0]));
}

function recognise(source: RecordingSource): number {
  if (source.members !== undefined) return 0;
  const { value, several } = recordingHead(source);
  if (isJsonObject(value)) return listIn(value) !== undefined ? 0.5 : several && isMessage(value) ? 0.4 : 0;
  const [first] = headObjects(value);
  if (first === undefined) return 0;
  return listIn(first) !== undefined ? 0.6 : isMessage(first) ? 0.5 : 0;
}

/** The conversations of a container, one after another. */
class Conversations {
  private current: { readonly key: number; readonly messages: ChatMessages } | undefined;

  constructor(
    private readonly id: string,
    private readonly several: boolean,
    private readonly onLoss: OnLoss,
  ) {}

  *message(key: number, message: unknown, place: string): Iterable<RecordedEntry> {
    if (this.current?.key !== key) {
      yield* this.end();
      const id = this.several ? `${this.id}-${key}` : this.id;
      this.current = { key, messages: new ChatMessages(id, place, this.onLoss) };
    }
    if (isJsonObject(message)) yield* this.current.messages.entries(message, place);
    else
      this.onLoss({
        reason: 'malformed-record',
        place,
        detail: `a ${message === null ? 'null' : typeof message} where a message was expected`,
      });
  }

  /** Tells the session of a conversation that ended before it could be told. */
  *end(): Iterable<RecordedEntry> {
    if (this.current !== undefined) yield* this.current.messages.end();
    this.current = undefined;
  }
}

async function* readLines(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const rows = listIn(headObject(source)) !== undefined;
  const conversations = new Conversations(recordingId(source), rows, onLoss);
  for await (const { record, place, line } of readJsonLines(source.open(), onLoss)) {
    const list = listIn(record);
    const messages = list === undefined ? undefined : record[list];
    if (Array.isArray(messages)) {
      for (const [index, message] of messages.entries()) yield* conversations.message(line, message, `${place}.${list}[${index}]`);
    } else if (typeof record.role === 'string') yield* conversations.message(rows ? line : 0, record, place);
    else onLoss({ reason: 'unknown-record', place, detail: 'neither a message nor a list of messages: left out' });
  }
  yield* conversations.end();
}

/** Where the messages of one document stand: `*`, `messages.*`, `*.traj.*`. */
function shapeOf(source: RecordingSource): { readonly items: readonly string[]; readonly several: boolean } {
  const { value } = recordingHead(source);
  if (isJsonObject(value)) return { items: [`${listIn(value) ?? 'messages'}.*`], several: false };
  const list = listIn(headObjects(value)[0]);
  return list === undefined ? { items: ['*'], several: false } : { items: LISTS.map((name) => `*.${name}.*`), several: true };
}

function placeIn({ path }: DocumentItem): string {
  return path.length === 1 ? `messages[${path[0]}]` : path.length === 2 ? `${path[0]}[${path[1]}]` : `[${path[0]}].${path[1]}[${path[2]}]`;
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  if (recordingHead(source).several) {
    yield* readLines(source, onLoss);
    return;
  }
  const { items, several } = shapeOf(source);
  const conversations = new Conversations(recordingId(source), several, onLoss);
  for await (const item of documentItems(source.open(), { items }, onLoss)) {
    yield* conversations.message(several ? Number(item.path[0]) : 0, item.value, placeIn(item));
  }
  yield* conversations.end();
}

/**
 * Chats in the shape of OpenAI's interface: a list of messages, an object with `messages`, a container of conversations (a session each, also tau-bench's
 * `traj`), or any of them as JSON lines. Results go with their calls by `tool_call_id`, without one by order.
 */
export const openAiChat: Importer = { format: 'openai-chat', recognise, read };
