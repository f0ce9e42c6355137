import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { idAt, momentOf, objectAt, textAt, textsAt } from '../entries/fields.js';
import { type Importer, notAnObject, type OnLoss, type RecordingSource } from '../importer.js';
import { documentItems } from '../json/json-document.js';
import { readGrowingLines } from '../json/json-lines.js';
import { headObject, headObjects, recordingHead, recordingId } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { GeminiRecords } from './records.js';

const isMessage = (record: JsonObject): boolean =>
  /^(?:user|gemini|info|warning|error)$/.test(textAt(record, 'type') ?? '') && 'content' in record;

function recognise(source: RecordingSource): number {
  const head = headObject(source);
  if (head === undefined || 'uuid' in head) return 0;
  if (typeof head.sessionId === 'string' && ('projectHash' in head || 'startTime' in head)) return 0.95;
  const messages = headObjects(head.messages);
  if (messages[0] !== undefined && isMessage(messages[0]) && !('role' in messages[0])) return 0.8;
  return recordingHead(source).several &&
    isMessage(head) &&
    'timestamp' in head &&
    !('sessionId' in head) &&
    !('message' in head)
    ? 0.6
    : 0;
}

function sessionOf(source: RecordingSource, header: JsonObject | undefined): EntryOf<'session'> {
  const model = headObjects(headObject(source)?.messages)
    .map((message) => textAt(message, 'model'))
    .find((one) => one !== undefined);
  return {
    kind: 'session',
    format: 'gemini-cli',
    native_id: idAt(header, 'sessionId') ?? recordingId(source),
    place: 'header',
    agent: 'Gemini CLI',
    model,
    cwd: textsAt(header, 'directories')[0] ?? textAt(header, 'cwd'),
    started_at: momentOf(header?.startTime),
  };
}

/** Reads a recording of an older version: one object, rewritten with each message. */
async function* readDocument(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const session = sessionOf(source, headObject(source));
  yield session;
  const records = new GeminiRecords(session.native_id, onLoss);
  for await (const { place, value } of documentItems(source.open(), { items: ['messages.*'] }, onLoss)) {
    if (isJsonObject(value)) yield* records.entries(value, place);
    else onLoss(notAnObject(value, 'a message', place));
  }
}

/**
 * Reads a log of newer versions: a header, messages, and changes to the list of messages. A changed
 * message is written again. So a message is held back until another one follows, and only its final
 * state becomes entries.
 */
class GeminiLog {
  readonly #source: RecordingSource;
  readonly #onLoss: OnLoss;
  #records: GeminiRecords | undefined;
  #held: { readonly message: JsonObject; readonly place: string } | undefined;

  constructor(source: RecordingSource, onLoss: OnLoss) {
    this.#source = source;
    this.#onLoss = onLoss;
  }

  *take(record: JsonObject, place: string): Iterable<RecordedEntry> {
    const id = idAt(record, 'id');
    const rewound = textAt(record, '$rewindTo');
    const change = objectAt(record, '$set');
    const isHeader = id === undefined && ('sessionId' in record || 'projectHash' in record);
    const records = yield* this.#begun(isHeader ? record : undefined);
    if (id !== undefined) {
      if (this.#held !== undefined && idAt(this.#held.message, 'id') !== id) yield* this.#flush();
      this.#held = { message: record, place: this.#held?.place ?? place };
      return;
    }
    yield* this.#flush();
    if (rewound !== undefined) yield* records.rewound(rewound, place);
    else if (change !== undefined)
      yield* Array.isArray(change.messages) ? records.replaced(this.#objects(change.messages, place), place) : [];
    else if (isHeader) {
      for (const [index, message] of this.#objects(record.messages, place).entries())
        yield* records.entries(message, `${place}.messages[${index}]`);
    } else {
      const fields = Object.keys(record).slice(0, 8).join(', ');
      this.#onLoss({ reason: 'unknown-record', place, detail: `a record with the fields ${fields}: left out` });
    }
  }

  /**
   * Yields the entries of the held message. If the message changes later, its new content becomes
   * further entries.
   */
  *rest(): Iterable<RecordedEntry> {
    if (this.#records !== undefined) yield* this.#flush();
  }

  *end(): Iterable<RecordedEntry> {
    yield* this.#begun(undefined);
    yield* this.#flush();
  }

  #objects(list: unknown, place: string): readonly JsonObject[] {
    const items: readonly unknown[] = Array.isArray(list) ? list : [];
    const others = items.filter((item) => !isJsonObject(item)).length;
    if (others > 0)
      this.#onLoss({ reason: 'malformed-record', place, detail: `${others} messages that are not objects: left out` });
    return items.filter(isJsonObject);
  }

  *#begun(header: JsonObject | undefined): Generator<RecordedEntry, GeminiRecords> {
    if (this.#records !== undefined) return this.#records;
    const session = sessionOf(this.#source, header);
    yield session;
    this.#records = new GeminiRecords(session.native_id, this.#onLoss);
    return this.#records;
  }

  *#flush(): Iterable<RecordedEntry> {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) yield* this.#records?.entries(held.message, held.place) ?? [];
  }
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const head = headObject(source);
  const { several, isOpen } = recordingHead(source);
  // A file that ends before its field `messages` is an incomplete document. None of its lines is a
  // record.
  const isTorn = isOpen && source.head.length >= source.size;
  if (!several && head !== undefined && ('messages' in head || isTorn)) {
    yield* readDocument(source, onLoss);
    return;
  }
  const log = new GeminiLog(source, onLoss);
  for await (const line of readGrowingLines(source.open(), onLoss))
    yield* 'rests' in line ? log.rest() : log.take(line.record, line.place);
  yield* log.end();
}

/**
 * Reads sessions of Gemini CLI. A file is one object, or in newer versions JSON lines with
 * rewritten messages, `$set` and `$rewindTo`. A call and its result are one object in a message,
 * and become two entries.
 */
export const geminiCli: Importer = { format: 'gemini-cli', recognise, read };
