import { isJsonObject, type JsonObject } from '../../../values/json-object.js';
import { ownMember } from '../../../values/own-member.js';
import { callArguments, chatThinking, partsText } from '../entries/chat-message.js';
import {
  type EntryCommon,
  entryCommon,
  idAt,
  momentOf,
  numberAt,
  objectAt,
  roleAt,
  textAt,
  textsAt,
} from '../entries/fields.js';
import type { FileEvidence } from '../entries/shown-file.js';
import { type Importer, notAnObject, type OnLoss, type RecordingSource, unknownRole } from '../importer.js';
import {
  type EventFiles,
  folderEvents,
  holdsOneConversation,
  memberRecord,
  type PlacedRecord,
} from '../json/folder-events.js';
import { documentItems } from '../json/json-document.js';
import { readJsonLines } from '../json/json-lines.js';
import { headObjects, recordingHead, recordingId } from '../json/recording-head.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { editorEvidence, exitFailed, shellDir, shellEvidence } from './evidence.js';

interface OpenCall {
  readonly id: string;
  readonly args: JsonObject;
}

const ORIGINS: ReadonlyMap<string, EntryOf<'message'>['origin']> = new Map([
  ['user', 'person'],
  ['agent', 'model'],
]);
/**
 * Events that are not part of the conversation, each with the name of its entry and the field with
 * its text.
 */
const ASIDE: Readonly<Record<string, readonly [name: string, field: string]>> = {
  PauseEvent: ['pause', 'reason'],
  InterruptEvent: ['aborted', 'reason'],
  CondensationRequest: ['condensation-request', 'reason'],
  CondensationSummaryEvent: ['condensation-summary', 'summary'],
  ConversationStateUpdateEvent: ['state', 'key'],
  ConversationErrorEvent: ['error', 'detail'],
  ServerErrorEvent: ['error', 'detail'],
  LLMCompletionLogEvent: ['completion-log', 'model_name'],
  StreamingDeltaEvent: ['streaming', 'key'],
  TokenEvent: ['tokens', 'key'],
  HookExecutionEvent: ['hook', 'hook_event_type'],
  ACPToolCallEvent: ['acp-tool-call', 'title'],
};

/** Converts the events of the OpenHands SDK to entries. */
class SdkEvents {
  readonly #session: string;
  readonly #onLoss: OnLoss;
  /** Calls without a result, by the id of their event. */
  readonly #open = new Map<string, OpenCall>();
  #cwd: string | undefined;
  /** The id of the model's answer that made the last call. */
  #response: string | undefined;

  constructor(session: string, onLoss: OnLoss) {
    this.#session = session;
    this.#onLoss = onLoss;
  }

  entries(event: JsonObject, place: string): readonly RecordedEntry[] {
    const common = entryCommon({ session: this.#session, place }, event, momentOf(event.timestamp));
    const kind = textAt(event, 'kind') ?? '';
    const read = ownMember(this.#readers, kind);
    if (read !== undefined) return read(event, common);
    const aside = ownMember(ASIDE, kind);
    if (aside !== undefined) return [{ ...common, kind: 'event', name: aside[0], text: textAt(event, aside[1]) }];
    this.#onLoss({
      reason: 'unknown-record',
      place,
      detail: `an event of the kind ${JSON.stringify(event.kind)}: left out`,
    });
    return [];
  }

  readonly #readers: Readonly<Record<string, (event: JsonObject, common: EntryCommon) => readonly RecordedEntry[]>> = {
    SystemPromptEvent: (event, common) => [
      {
        ...common,
        kind: 'message',
        role: 'system',
        origin: 'harness',
        text: systemPrompt(event, common.place, this.#onLoss),
      },
    ],
    MessageEvent: (event, common) => this.#message(event, common),
    ActionEvent: (event, common) => this.#action(event, common),
    ObservationEvent: (event, common) => [this.#observation(event, common)],
    AgentErrorEvent: (event, common) => [
      this.#answer(event, common, { text: textAt(event, 'error') ?? '', is_error: true }),
    ],
    UserRejectObservation: (event, common) => [
      this.#answer(event, common, { text: textAt(event, 'rejection_reason') ?? '', is_error: true }),
    ],
    Condensation: (event, common) => {
      const dropped = textsAt(event, 'forgotten_event_ids').filter((id) => id !== '');
      return [
        {
          ...common,
          kind: 'compaction',
          summary: textAt(event, 'summary'),
          dropped: dropped.length === 0 ? undefined : dropped,
        },
      ];
    },
  };

  #message(event: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
    const message = objectAt(event, 'llm_message');
    const { place } = common;
    const extended = partsText(event.extended_content, { place: `${place}.extended_content`, onLoss: this.#onLoss });
    const text = [partsText(message?.content, { place, onLoss: this.#onLoss }), extended]
      .filter((part) => part !== '')
      .join('\n');
    const role = roleAt(message);
    if (role === undefined) this.#onLoss(unknownRole(message?.role, place));
    const origin = role === undefined ? 'harness' : (ORIGINS.get(textAt(event, 'source') ?? '') ?? 'harness');
    const thinking = message === undefined ? undefined : chatThinking(message);
    return [{ ...common, kind: 'message', role: role ?? 'user', origin, text, thinking }];
  }

  #action(event: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
    const { place } = common;
    const text = partsText(event.thought, { place, onLoss: this.#onLoss });
    const thinking = chatThinking(event);
    const said: RecordedEntry = { ...common, kind: 'message', role: 'assistant', origin: 'model', text, thinking };
    const made = objectAt(event, 'tool_call');
    const { kind: _kind, ...action } = objectAt(event, 'action') ?? {};
    const args = callArguments(made?.arguments ?? objectAt(made, 'function')?.arguments ?? action, place, this.#onLoss);
    const id = idAt(event, 'tool_call_id') ?? idAt(made, 'id') ?? idAt(event, 'id') ?? place;
    this.#open.set(idAt(event, 'id') ?? place, { id, args });
    const tool = textAt(event, 'tool_name') ?? textAt(made, 'name') ?? 'unknown';
    const call: RecordedEntry = { ...common, kind: 'call', call_id: id, tool, args, cwd: this.#cwd };
    const response = idAt(event, 'llm_response_id');
    const further = response !== undefined && response === this.#response;
    this.#response = response;
    // Each call of an answer is a separate event. Only the first of these events has the answer's
    // text.
    return further && text === '' && thinking === undefined ? [call] : [said, call];
  }

  #observation(event: JsonObject, common: EntryCommon): RecordedEntry {
    const twin = objectAt(event, 'observation');
    const own = partsText(twin?.content ?? twin?.output, { place: common.place, onLoss: this.#onLoss });
    const metadata = objectAt(twin, 'metadata');
    const text = `${textAt(metadata, 'prefix') ?? ''}${own}${textAt(metadata, 'suffix') ?? ''}`;
    const open = this.#opened(event);
    const shell = metadata !== undefined || typeof twin?.exit_code === 'number';
    if (shell) this.#cwd = shellDir(twin, own) ?? this.#cwd;
    const command = textAt(twin, 'command') ?? textAt(open?.args, 'command') ?? '';
    const is_error = twin?.is_error === true || exitFailed(twin, command, own);
    const view = {
      path: textAt(open?.args, 'path'),
      whole: open?.args.command === 'view' && open.args.view_range === undefined,
    };
    const shown = is_error ? {} : shell ? shellEvidence(command, own) : editorEvidence(twin, own, view);
    return this.#answer(event, common, {
      text,
      is_error,
      ...shown,
      ...(/<response clipped>/.test(own) ? { truncated: true } : {}),
    });
  }

  /** Returns the open call whose result an event has. */
  #opened(event: JsonObject): OpenCall | undefined {
    const action = idAt(event, 'action_id');
    if (action !== undefined && this.#open.has(action)) return this.#open.get(action);
    const id = idAt(event, 'tool_call_id');
    return [...this.#open.values()].find((call) => call.id === id);
  }

  #answer(
    event: JsonObject,
    common: EntryCommon,
    result: Pick<EntryOf<'result'>, 'text' | 'is_error'> & FileEvidence,
  ): RecordedEntry {
    const open = this.#opened(event);
    for (const [action, call] of this.#open) if (call === open) this.#open.delete(action);
    const id = open?.id ?? idAt(event, 'tool_call_id') ?? idAt(event, 'action_id') ?? common.place;
    return { ...common, kind: 'result', call_id: id, ...result };
  }
}

/** Returns the system prompt, including the additions for this session. */
function systemPrompt(event: JsonObject, place: string, onLoss: OnLoss): string {
  const parts = [event.system_prompt, event.dynamic_context].filter((part) => part !== undefined && part !== null);
  return partsText(parts, { place, onLoss });
}

/** Returns the session entry, from the state in the folder and the first event. */
function sessionOf(session: string, state: JsonObject | undefined, first: JsonObject | undefined): EntryOf<'session'> {
  const model = textAt(objectAt(objectAt(state, 'agent'), 'llm'), 'model');
  return {
    kind: 'session',
    format: 'openhands-sdk',
    native_id: session,
    place: 'events',
    agent: 'OpenHands',
    model,
    cwd: textAt(objectAt(state, 'workspace'), 'working_dir'),
    started_at: momentOf(first?.timestamp) ?? numberAt(state, 'started_at'),
    system_prompt: first?.kind === 'SystemPromptEvent' ? systemPrompt(first, 'events', () => undefined) : undefined,
  };
}

const EVENT_FILES: EventFiles = {
  name: /(?:^|[\\/])event-(\d+)[^\\/]*\.json$/,
  known: new Set(['base_state.json', 'meta.json', 'TASKS.json', '.eventlog.lock']),
};
const STATE_FILE = /(?:^|[\\/])base_state\.json$/;
const KIND =
  /^(?:SystemPrompt|Message|Action|Observation|AgentError|Pause|ConversationStateUpdate)Event$|^(?:Condensation|UserRejectObservation)$/;

const isEvent = (record: JsonObject | undefined): boolean =>
  KIND.test(textAt(record, 'kind') ?? '') && record !== undefined && ('timestamp' in record || 'source' in record);

function recognise(source: RecordingSource): number {
  if (source.members !== undefined) return holdsOneConversation(source, EVENT_FILES) ? 0.95 : 0;
  const { value } = recordingHead(source);
  const [first] = isJsonObject(value) ? [value] : headObjects(value);
  return isEvent(first) ? 0.95 : 0;
}

async function* eventsOf(source: RecordingSource, onLoss: OnLoss): AsyncIterable<PlacedRecord> {
  if (source.members !== undefined) {
    yield* folderEvents(source, EVENT_FILES, onLoss);
  } else if (Array.isArray(recordingHead(source).value)) {
    for await (const { place, value } of documentItems(source.open(), { items: ['*'] }, onLoss)) {
      if (isJsonObject(value)) yield { record: value, place };
      else onLoss(notAnObject(value, 'an event', place));
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
 * Reads conversations of the OpenHands SDK: a folder with one file per event, or the events as JSON
 * lines or as a list. The files are `event-NNNNN-….json` and `base_state.json`.
 *
 * Results are matched to calls by `action_id` or `tool_call_id`. A condensation names the events
 * that it removes from the context.
 */
export const openHandsSdk: Importer = { format: 'openhands-sdk', readsFolders: true, recognise, read };
