import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { idAt, listAt, objectAt, textAt } from '../entries/fields.js';
import { type Importer, notAnObject, type OnLoss, type RecordingSource } from '../importer.js';
import { type EventFiles, folderEvents, holdsOneConversation, type PlacedRecord } from '../json/folder-events.js';
import { documentItems } from '../json/json-document.js';
import { readJsonLines } from '../json/json-lines.js';
import { headObjects, recordingHead, recordingId } from '../json/recording-head.js';
import type { RecordedEntry } from '../neutral-session.js';
import { LegacyEvents } from './legacy-events.js';

const EVENT_FILES: EventFiles = {
  name: /(?:^|[\\/])(\d+)\.json$/,
  known: new Set(['metadata.json', 'agent_state.pkl', 'conversation_stats.json']),
};

const isEvent = (record: unknown): boolean =>
  isJsonObject(record) &&
  (typeof record.action === 'string' || typeof record.observation === 'string') &&
  !('role' in record);
/** Returns whether a list holds events, or pairs of an action and an observation. */
const isHistory = (list: unknown): boolean => {
  if (!Array.isArray(list)) return false;
  const [first] = list;
  return isEvent(Array.isArray(first) ? first[0] : first);
};

function recognise(source: RecordingSource): number {
  const { value } = recordingHead(source);
  if (source.members !== undefined) return holdsOneConversation(source, EVENT_FILES) && isEvent(value) ? 0.9 : 0;
  if (isJsonObject(value)) {
    if (isHistory(value.history)) return 0.95;
    const row =
      Array.isArray(value.history) && 'instruction' in value && ('git_patch' in value || 'test_result' in value);
    return row ? 0.8 : isEvent(value) && ('source' in value || 'args' in value || 'extras' in value) ? 0.85 : 0;
  }
  const first = headObjects(value)[0];
  if (isHistory(value)) return first !== undefined && 'observation' in first && 'action' in first ? 0.5 : 0.9;
  return 0;
}

/** Yields the events in an item of a history. An item is an event or a pair of events. */
function* eventsIn(item: unknown, place: string, onLoss: OnLoss): Iterable<PlacedRecord> {
  if (isJsonObject(item)) yield { record: item, place };
  else if (Array.isArray(item))
    for (const [index, part] of item.entries()) yield* eventsIn(part, `${place}[${index}]`, onLoss);
  else onLoss(notAnObject(item, 'an event', place));
}

const systemPrompt = (event: unknown): string | undefined =>
  isJsonObject(event) && event.action === 'system' ? textAt(objectAt(event, 'args') ?? event, 'content') : undefined;

/** The session of a history: its id, its place, and the evaluation row that holds it. */
interface HistoryOf {
  readonly id: string;
  readonly place: string;
  readonly row?: JsonObject | undefined;
}

/** Converts one history to entries. Its first item yields the session entry. */
class HistoryReader {
  readonly #of: HistoryOf;
  readonly #onLoss: OnLoss;
  #events: LegacyEvents | undefined;

  constructor(of: HistoryOf, onLoss: OnLoss) {
    this.#of = of;
    this.#onLoss = onLoss;
  }

  *item(item: unknown, place: string): Iterable<RecordedEntry> {
    const first = this.#events === undefined;
    const system = first ? systemPrompt(Array.isArray(item) ? item[0] : item) : undefined;
    if (first) yield this.#session(system);
    this.#events ??= new LegacyEvents(this.#of.id, this.#onLoss);
    for (const { record, place: at } of eventsIn(item, place, this.#onLoss)) {
      if (system === undefined || systemPrompt(record) !== system) yield* this.#events.entries(record, at);
    }
  }

  *end(): Iterable<RecordedEntry> {
    const { id, place, row } = this.#of;
    if (this.#events === undefined) yield this.#session(undefined);
    const error = textAt(row, 'error');
    if (error !== undefined && error !== '')
      yield { kind: 'event', session: id, place: `${place}.error`, name: 'error', text: error };
  }

  #session(system_prompt: string | undefined): RecordedEntry {
    const { id, place, row } = this.#of;
    const model = textAt(objectAt(objectAt(row, 'metadata'), 'llm_config'), 'model');
    const rest = { model, system_prompt };
    return { kind: 'session', format: 'openhands-legacy', native_id: id, place, agent: 'OpenHands', ...rest };
  }
}

function* rowEntries(row: JsonObject, { id, place }: HistoryOf, onLoss: OnLoss): Iterable<RecordedEntry> {
  const reader = new HistoryReader({ id, place, row }, onLoss);
  const history = listAt(row, 'history');
  for (const [index, item] of history.entries()) yield* reader.item(item, `${place}.history[${index}]`);
  yield* reader.end();
  const instruction = textAt(row, 'instruction');
  if (history.length > 0 || instruction === undefined || instruction === '') return;
  yield {
    kind: 'message',
    session: id,
    place: `${place}.instruction`,
    role: 'user',
    origin: 'person',
    text: instruction,
  };
}

/** Reads JSON lines. Each evaluation row is a session. Single events together are one session. */
async function* readLines(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const own = recordingId(source);
  const used = new Set<string>();
  let stream: HistoryReader | undefined;
  for await (const { record, place, line } of readJsonLines(source.open(), onLoss)) {
    if (isEvent(record)) {
      stream ??= new HistoryReader({ id: own, place: 'events' }, onLoss);
      yield* stream.item(record, place);
    } else if (Array.isArray(record.history) || 'instruction' in record) {
      const named = idAt(record, 'instance_id') ?? `${own}-${line}`;
      const id = used.has(named) ? `${named}-${line}` : named;
      used.add(id);
      yield* rowEntries(record, { id, place }, onLoss);
    } else {
      onLoss({ reason: 'unknown-record', place, detail: 'neither an event nor a row with a history: left out' });
    }
  }
  if (stream !== undefined) yield* stream.end();
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const { value } = recordingHead(source);
  if (source.members !== undefined) {
    const reader = new HistoryReader({ id: recordingId(source), place: 'events' }, onLoss);
    for await (const { record, place } of folderEvents(source, EVENT_FILES, onLoss)) yield* reader.item(record, place);
    yield* reader.end();
  } else if (Array.isArray(value) || /^\s*\{\s*\n/.test(source.head.subarray(0, 64).toString('utf8'))) {
    const row = isJsonObject(value) ? value : undefined;
    const reader = new HistoryReader(
      { id: idAt(row, 'instance_id') ?? recordingId(source), place: 'history', row },
      onLoss,
    );
    const items = documentItems(source.open(), { items: ['history.*', '*'] }, onLoss);
    for await (const { place, value } of items) yield* reader.item(value, place);
    yield* reader.end();
  } else yield* readLines(source, onLoss);
}

/**
 * Reads recordings of OpenHands 0.x. They are the rows of an evaluation's `output.jsonl` (one
 * session each), a list or folder of events, or events as JSON lines. Events may be flattened, have
 * metadata, or come in pairs.
 *
 * An observation names its action by the field `cause` or by the id of the call. Otherwise it
 * belongs to the oldest action without an observation.
 */
export const openHandsLegacy: Importer = { format: 'openhands-legacy', readsFolders: true, recognise, read };
