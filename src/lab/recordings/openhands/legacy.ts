import { defined } from '../../../values/defined.js';
import { idAt, objectAt, textAt } from '../entries/fields.js';
import { recordingId } from '../entries/recording-id.js';
import type { Importer, OnLoss, RecordingSource } from '../importer.js';
import { folderEvents, holdsOneConversation } from '../json/folder-events.js';
import { documentItems } from '../json/json-document.js';
import { readJsonLines } from '../json/json-lines.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import { headObjects, recordingHead } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { LegacyEvents } from './events.js';

const EVENT_FILE = /(?:^|[\\/])(\d+)\.json$/;
const KNOWN_FILES: ReadonlySet<string> = new Set(['metadata.json', 'agent_state.pkl', 'conversation_stats.json']);

const isEvent = (record: unknown): boolean =>
  isJsonObject(record) && (typeof record.action === 'string' || typeof record.observation === 'string') && !('role' in record);
/** Events stand alone, or an action and its observation as a pair. */
const isHistory = (list: unknown): boolean => {
  if (!Array.isArray(list)) return false;
  const [first] = list;
  return isEvent(Array.isArray(first) ? first[0] : first);
};

function recognise(source: RecordingSource): number {
  const { value } = recordingHead(source);
  if (source.members !== undefined) return holdsOneConversation(source, EVENT_FILE) && isEvent(value) ? 0.9 : 0;
  if (isJsonObject(value)) {
    if (isHistory(value.history)) return 0.95;
    const row = Array.isArray(value.history) && 'instruction' in value && ('git_patch' in value || 'test_result' in value);
    return row ? 0.8 : isEvent(value) && ('source' in value || 'args' in value || 'extras' in value) ? 0.85 : 0;
  }
  const first = headObjects(value)[0];
  if (isHistory(value)) return first !== undefined && 'observation' in first && 'action' in first ? 0.5 : 0.9;
  return 0;
}

/** A history, item by item, with the places of its events. */
function* eventsIn(item: unknown, place: string, onLoss: OnLoss): Iterable<{ readonly record: JsonObject; readonly place: string }> {
  if (isJsonObject(item)) yield { record: item, place };
  else if (Array.isArray(item)) for (const [index, part] of item.entries()) yield* eventsIn(part, `${place}[${index}]`, onLoss);
  else onLoss({ reason: 'malformed-record', place, detail: `a ${item === null ? 'null' : typeof item} where an event was expected` });
}

/** The session that a row of an evaluation tells, or a stream of events. */
function sessionOf(id: string, place: string, row: JsonObject | undefined, system?: string): EntryOf<'session'> {
  const metadata = objectAt(row, 'metadata');
  const model = textAt(objectAt(metadata, 'llm_config'), 'model');
  return {
    kind: 'session',
    format: 'openhands-legacy',
    native_id: id,
    place,
    agent: 'OpenHands',
    ...defined({ model, system_prompt: system }),
  };
}

const systemPrompt = (event: unknown): string | undefined =>
  isJsonObject(event) && event.action === 'system' ? textAt(objectAt(event, 'args') ?? event, 'content') : undefined;

/** The entries of one history; the session is told with its first item. */
class Telling {
  private events: LegacyEvents | undefined;

  constructor(
    private readonly id: string,
    private readonly place: string,
    private readonly row: JsonObject | undefined,
    private readonly onLoss: OnLoss,
  ) {}

  *item(item: unknown, place: string): Iterable<RecordedEntry> {
    const first = this.events === undefined;
    const system = first ? systemPrompt(Array.isArray(item) ? item[0] : item) : undefined;
    if (first) yield sessionOf(this.id, this.place, this.row, system);
    this.events ??= new LegacyEvents(this.id, this.onLoss);
    for (const { record, place: at } of eventsIn(item, place, this.onLoss)) {
      if (system === undefined || systemPrompt(record) !== system) yield* this.events.entries(record, at);
    }
  }

  *end(): Iterable<RecordedEntry> {
    if (this.events === undefined) yield sessionOf(this.id, this.place, this.row);
    const error = textAt(this.row, 'error');
    if (error !== undefined && error !== '') {
      yield { kind: 'event', session: this.id, place: `${this.place}.error`, name: 'error', text: error };
    }
  }
}

function* rowEntries(row: JsonObject, id: string, place: string, onLoss: OnLoss): Iterable<RecordedEntry> {
  const telling = new Telling(id, place, row, onLoss);
  const history = Array.isArray(row.history) ? row.history : [];
  for (const [index, item] of history.entries()) yield* telling.item(item, `${place}.history[${index}]`);
  yield* telling.end();
  const instruction = textAt(row, 'instruction');
  if (history.length > 0 || instruction === undefined || instruction === '') return;
  yield { kind: 'message', session: id, place: `${place}.instruction`, role: 'user', origin: 'person', text: instruction };
}

/** Rows of an evaluation, a session each; events that stand for themselves are one session together. */
async function* readLines(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const own = recordingId(source);
  const used = new Set<string>();
  let stream: Telling | undefined;
  for await (const { record, place, line } of readJsonLines(source.open(), onLoss)) {
    if (isEvent(record)) {
      stream ??= new Telling(own, 'events', undefined, onLoss);
      yield* stream.item(record, place);
    } else if (Array.isArray(record.history) || 'instruction' in record) {
      const named = idAt(record, 'instance_id') ?? `${own}-${line}`;
      const id = used.has(named) ? `${named}-${line}` : named;
      used.add(id);
      yield* rowEntries(record, id, place, onLoss);
    } else {
      onLoss({ reason: 'unknown-record', place, detail: 'neither an event nor a row with a history: left out' });
    }
  }
  if (stream !== undefined) yield* stream.end();
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const { value } = recordingHead(source);
  if (source.members !== undefined) {
    const telling = new Telling(recordingId(source), 'events', undefined, onLoss);
    for await (const { record, place } of folderEvents(source, EVENT_FILE, KNOWN_FILES, onLoss)) yield* telling.item(record, place);
    yield* telling.end();
  } else if (Array.isArray(value) || /^\s*\{\s*\n/.test(source.head.subarray(0, 64).toString('utf8'))) {
    const row = isJsonObject(value) ? value : undefined;
    const telling = new Telling(idAt(row, 'instance_id') ?? recordingId(source), 'history', row, onLoss);
    for await (const { path, value: item } of documentItems(source.open(), { items: ['history.*', '*'] }, onLoss)) {
      yield* telling.item(item, path.length === 1 ? `[${path[0]}]` : `history[${path[1]}]`);
    }
    yield* telling.end();
  } else yield* readLines(source, onLoss);
}

/**
 * Recordings of OpenHands 0.x: rows of an evaluation's `output.jsonl` (a session each), one list or folder of events, or events as JSON lines; with their
 * metadata or flattened, one by one or as pairs. An observation goes with the action that it names as its cause, with its call's id, else with the oldest
 * action that has none.
 */
export const openHandsLegacy: Importer = { format: 'openhands-legacy', recognise, read };
