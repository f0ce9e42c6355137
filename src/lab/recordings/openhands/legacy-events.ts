import type { JsonObject } from '../../../values/json-object.js';
import { chatCalls, chatUsage, partsText, takeFirst } from '../entries/chat-message.js';
import {
  type EntryCommon,
  entryCommon,
  idAt,
  momentOf,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
} from '../entries/fields.js';
import { type FileEvidence, fileEvidence, fileWindows, wholeFile } from '../entries/shown-file.js';
import type { OnLoss } from '../importer.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { editorEvidence, exitFailed, shellDir, shellEvidence } from './evidence.js';

interface OpenCall {
  /** The id of the event that made the call, if it has one. */
  readonly event: string | undefined;
  readonly id: string;
  readonly args: JsonObject;
}

/** Actions that are not tool calls. */
const ASIDE: ReadonlySet<string> = new Set([
  'recall',
  'null',
  'change_agent_state',
  'condensation_request',
  'start',
  'pause',
  'resume',
  'stop',
  'loop_recovery',
]);
/** Fields that OpenHands adds to a call's arguments. All other fields come from the model. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  'action',
  'id',
  'timestamp',
  'source',
  'cause',
  'message',
  'args',
  'tool_call_metadata',
  'llm_metrics',
  'thought',
  'is_confirmed',
  'confirmation_state',
  'security_risk',
  'keep_prompt',
  'hidden',
  'blocking',
  'is_static',
  'kernel_init_code',
  'include_extra',
  'impl_source',
  'images_urls',
  'image_urls',
  'llm_config',
]);
const FAILED = new RegExp(
  '^(?:ERROR:|Error:|\\[Your proposed edit has introduced|\\[No exact match found|' +
    '\\[The content in this file is absolutely identical|No replacement was performed|Invalid `)',
);
/** Maximum number of dropped ids that a condensation may list as a range. */
const MOST_DROPPED = 100_000;

const asFields = (record: JsonObject, drop: ReadonlySet<string>): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([name, value]) => !drop.has(name) && value !== null));

/**
 * Converts the events of OpenHands 0.x to entries. Actions and observations without ids are matched
 * by order.
 */
export class LegacyEvents {
  readonly #session: string;
  readonly #onLoss: OnLoss;
  readonly #open: OpenCall[] = [];
  readonly #counted = new Set<string>();
  #cwd: string | undefined;
  #asked = false;

  constructor(session: string, onLoss: OnLoss) {
    this.#session = session;
    this.#onLoss = onLoss;
  }

  entries(event: JsonObject, place: string): readonly RecordedEntry[] {
    const common = entryCommon({ session: this.#session, place }, event, momentOf(event.timestamp));
    const action = textAt(event, 'action');
    const observation = textAt(event, 'observation');
    if (action !== undefined) return this.#acted(action, event, common);
    if (observation !== undefined) return this.#observed(observation, event, common);
    this.#onLoss({ reason: 'unknown-record', place, detail: 'neither an action nor an observation: left out' });
    return [];
  }

  #acted(action: string, event: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
    const args = objectAt(event, 'args') ?? event;
    if (action === 'message') return [this.#message(event, args, common)];
    if (action === 'system')
      return [{ ...common, kind: 'message', role: 'system', origin: 'harness', text: textAt(args, 'content') ?? '' }];
    if (action === 'condensation') return [this.#condensation(args, common)];
    if (ASIDE.has(action)) {
      const text = textAt(args, 'query') ?? textAt(args, 'agent_state');
      return [{ ...common, kind: 'event', name: action.replaceAll('_', '-'), text: text === '' ? undefined : text }];
    }
    return [...this.#said(event, args, common), this.#called(event, args, common)];
  }

  #message(event: JsonObject, args: JsonObject, common: EntryCommon): RecordedEntry {
    const source = textAt(event, 'source') ?? (this.#asked && args.wait_for_response === true ? 'agent' : 'user');
    const images = [...textsAt(args, 'image_urls'), ...textsAt(args, 'images_urls')].map((url) => ({
      type: 'image_url',
      image_url: url,
    }));
    const text = partsText([textAt(args, 'content') ?? '', ...images], { place: common.place, onLoss: this.#onLoss });
    const isUser = source === 'user';
    this.#asked ||= isUser;
    const usage = isUser ? undefined : this.#usage(event);
    const origin = isUser ? 'person' : source === 'agent' ? 'model' : 'harness';
    return { ...common, kind: 'message', role: source === 'agent' ? 'assistant' : 'user', origin, text, usage };
  }

  #condensation(args: JsonObject, common: EntryCommon): RecordedEntry {
    const named = Array.isArray(args.forgotten_event_ids) ? args.forgotten_event_ids.map(String) : [];
    const from = numberAt(args, 'forgotten_events_start_id');
    const to = numberAt(args, 'forgotten_events_end_id');
    if (from !== undefined && to !== undefined)
      for (let id = from; id <= to && named.length < MOST_DROPPED; id += 1) named.push(String(id));
    const dropped = named.length === 0 ? undefined : named;
    return { ...common, kind: 'compaction', summary: textAt(args, 'summary'), dropped };
  }

  /** Returns the message that the model wrote with a call. */
  #said(event: JsonObject, args: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
    const text =
      [textAt(args, 'thought'), textAt(args, 'final_thought')].find((one) => one !== undefined && one !== '') ?? '';
    const usage = this.#usage(event);
    const response = idAt(objectAt(objectAt(event, 'tool_call_metadata'), 'model_response'), 'id');
    // This is a further call of an answer whose message was already returned.
    if (text === '' && usage === undefined && response !== undefined) return [];
    return [{ ...common, kind: 'message', role: 'assistant', origin: 'model', text, usage }];
  }

  /** Returns the token counts of an action's answer. Each answer is counted once. */
  #usage(event: JsonObject): EntryOf<'message'>['usage'] {
    const response = objectAt(objectAt(event, 'tool_call_metadata'), 'model_response');
    const id = idAt(response, 'id');
    if (id === undefined || this.#counted.has(id)) return undefined;
    this.#counted.add(id);
    return chatUsage(response);
  }

  #called(event: JsonObject, args: JsonObject, common: EntryCommon): RecordedEntry {
    const action = textAt(event, 'action') ?? '';
    const metadata = objectAt(event, 'tool_call_metadata');
    const id = idAt(metadata, 'tool_call_id');
    const choices = objectsAt(objectAt(metadata, 'model_response'), 'choices');
    const made = choices
      .flatMap((choice) => chatCalls(objectAt(choice, 'message') ?? {}, common.place, () => undefined))
      .find((call) => call.id === id);
    const call = made ?? { tool: action, args: asFields(args, OWN_FIELDS) };
    const call_id = id ?? idAt(event, 'id') ?? common.place;
    this.#open.push({ event: idAt(event, 'id'), id: call_id, args });
    return { ...common, kind: 'call', call_id, tool: call.tool, args: call.args, cwd: this.#cwd };
  }

  #observed(observation: string, event: JsonObject, common: EntryCommon): readonly RecordedEntry[] {
    const text = partsText(event.content, { place: common.place, onLoss: this.#onLoss });
    const extras = objectAt(event, 'extras') ?? event;
    const call = this.#answered(event, observation);
    if (
      call === undefined &&
      (observation === 'agent_state_changed' ||
        observation === 'recall' ||
        observation === 'null' ||
        observation === 'error')
    ) {
      return [
        {
          ...common,
          kind: 'event',
          name: observation.replaceAll('_', '-'),
          text: text === '' ? textAt(extras, 'agent_state') : text,
        },
      ];
    }
    const exited = exitFailed(extras, textAt(call?.args, 'command'), text);
    const is_error = observation === 'error' || observation === 'user_rejected' || exited || FAILED.test(text);
    const dir = observation === 'run' ? shellDir(extras, text) : undefined;
    this.#cwd = dir ?? this.#cwd;
    const shown = is_error && observation !== 'edit' ? {} : evidenceOf(observation, extras, { text, args: call?.args });
    const cut = /<response clipped>|\[\.\.\. Observation truncated/.test(text);
    const call_id =
      call?.id ?? idAt(objectAt(event, 'tool_call_metadata'), 'tool_call_id') ?? idAt(event, 'cause') ?? common.place;
    return [{ ...common, kind: 'result', call_id, text, is_error, ...(cut ? { truncated: true } : {}), ...shown }];
  }

  /**
   * Removes and returns the call of an observation: the call that it names, or the oldest call if
   * it names none.
   */
  #answered(event: JsonObject, observation: string): OpenCall | undefined {
    const cause = idAt(event, 'cause');
    const id = idAt(objectAt(event, 'tool_call_metadata'), 'tool_call_id');
    const byOrder =
      cause === undefined && id === undefined && !/^(?:agent_state_changed|recall|null)$/.test(observation);
    return takeFirst(
      this.#open,
      (call) => byOrder || (cause !== undefined && call.event === cause) || (id !== undefined && call.id === id),
    );
  }
}

/** Returns the evidence about files in an observation. `args` are the arguments of its call. */
function evidenceOf(
  observation: string,
  extras: JsonObject,
  { text, args }: { readonly text: string; readonly args: JsonObject | undefined },
): FileEvidence {
  const path = textAt(extras, 'path') ?? textAt(args, 'path');
  if (observation === 'run') return shellEvidence(textAt(extras, 'command') ?? textAt(args, 'command') ?? '', text);
  if (observation === 'run_ipython') return fileEvidence(fileWindows(text));
  if (observation !== 'read' && observation !== 'edit') return {};
  const whole = args?.view_range === undefined || args.view_range === null;
  const shown = editorEvidence(extras, text, { path, whole: whole && observation === 'read' });
  const plain =
    observation === 'read' &&
    shown.files === undefined &&
    shown.listed === undefined &&
    path !== undefined &&
    path !== '';
  const all = (numberAt(args, 'start') ?? 0) === 0 && (numberAt(args, 'end') ?? -1) === -1;
  return plain && all && whole && !/running `cat -n` on/.test(text)
    ? { files: [wholeFile(path, text, 'after')] }
    : shown;
}
