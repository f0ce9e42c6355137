import { idAt, textAt } from '../entries/fields.js';
import { recordingId } from '../entries/recording-id.js';
import type { Importer, OnLoss, RecordingSource } from '../importer.js';
import { folderEvents, holdsOneConversation, memberRecord } from '../json/folder-events.js';
import { documentItems } from '../json/json-document.js';
import { readJsonLines } from '../json/json-lines.js';
import { isJsonObject, type JsonObject } from '../json/json-text.js';
import { headObjects, recordingHead } from '../json/recording-head.js';
import type { RecordedEntry } from '../neutral-session.js';
import { SdkEvents, sessionOf } from './sdk-events.js';

const EVENT_FILE = /(?:^|[\\/])event-(\d+)[^\\/]*\.json$/;
const STATE_FILE = /(?:^|[\\/])base_state\.json$/;
const KNOWN_FILES: ReadonlySet<string> = new Set(['base_state.json', 'meta.json', 'TASKS.json', '.eventlog.lock']);
const KIND =
  /^(?:SystemPrompt|Message|Action|Observation|AgentError|Pause|ConversationStateUpdate)Event$|^(?:Condensation|UserRejectObservation)$/;

const isEvent = (record: JsonObject | undefined): boolean =>
  KIND.test(textAt(record, 'kind') ?? '') && record !== undefined && ('timestamp' in record || 'source' in record);

function recognise(source: RecordingSource): number {
  if (source.members !== undefined) return holdsOneConversation(source, EVENT_FILE) ? 0.95 : 0;
  const { value } = recordingHead(source);
  const [first] = isJsonObject(value) ? [value] : headObjects(value);
  return isEvent(first) ? 0.95 : 0;
}

interface PlacedEvent {
  readonly record: JsonObject;
  readonly place: string;
}

async function* eventsOf(source: RecordingSource, onLoss: OnLoss): AsyncIterable<PlacedEvent> {
  if (source.members !== undefined) {
    yield* folderEvents(source, EVENT_FILE, KNOWN_FILES, onLoss);
  } else if (Array.isArray(recordingHead(source).value)) {
    for await (const { path, value } of documentItems(source.open(), { items: ['*'] }, onLoss)) {
      const place = `[${path[0]}]`;
      if (isJsonObject(value)) yield { record: value, place };
      else onLoss({ reason: 'malformed-record', place, detail: `a ${value === null ? 'null' : typeof value} where an event was expected` });
    }
  } else {
    yield* readJsonLines(source.open(), onLoss);
  }
}

async function* read(source: RecordingSource, onLoss: OnLoss): AsyncIterable<RecordedEntry> {
  const stateFile = source.members?.find((member) => STATE_FILE.test(member));
  const state = stateFile === undefined ? undefined : await memberRecord(source, stateFile, onLoss);
  const session = idAt(state, 'id') ?? recordingId(source);
  const events = new SdkEvents(session, onLoss);
  let begun = false;
  for await (const { record, place } of eventsOf(source, onLoss)) {
    if (!begun) yield sessionOf(session, state, record);
    const isPrompt = !begun && record.kind === 'SystemPromptEvent';
    begun = true;
    if (!isPrompt) yield* events.entries(record, place);
  }
  if (!begun) yield sessionOf(session, state, undefined);
}

/**
 * Conversations of the OpenHands SDK: a folder with a file for each event (`event-NNNNN-….json`, beside it `base_state.json`), or the events as JSON lines or
 * as one list. Results go with their calls by `action_id` or `tool_call_id`; a condensation names the events that leave the context.
 */
export const openHandsSdk: Importer = { format: 'openhands-sdk', recognise, read };
