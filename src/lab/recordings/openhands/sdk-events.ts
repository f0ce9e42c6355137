import { defined } from '../../../values/defined.js';
import { callArguments } from '../entries/call-arguments.js';
import { chatThinking } from '../entries/chat-calls.js';
import { idAt, momentOf, numberAt, objectAt, textAt, textsAt } from '../entries/fields.js';
import { partsText } from '../entries/message-parts.js';
import type { OnLoss } from '../importer.js';
import type { JsonObject } from '../json/json-text.js';
import type { EntryOf, RecordedEntry } from '../neutral-session.js';
import { type Common, eventCommon } from './event-fields.js';
import { type Evidence, editorEvidence, exitFailed, shellDir, shellEvidence } from './evidence.js';

interface OpenCall {
  readonly id: string;
  readonly args: JsonObject;
}

const ROLES: ReadonlyMap<string, EntryOf<'message'>['role']> = new Map([
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['system', 'system'],
  ['developer', 'developer'],
]);
const ORIGINS: ReadonlyMap<string, EntryOf<'message'>['origin']> = new Map([
  ['user', 'person'],
  ['agent', 'model'],
]);
/** Events that are no part of the conversation, and the field that says most about them. */
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

/** Turns the events of the OpenHands SDK, one by one, into entries. */
export class SdkEvents {
  /** Calls without an answer by the id of their event. */
  private readonly open = new Map<string, OpenCall>();
  private cwd: string | undefined;
  /** The answer that the last call was of. */
  private response: string | undefined;

  constructor(
    private readonly session: string,
    private readonly onLoss: OnLoss,
  ) {}

  entries(event: JsonObject, place: string): readonly RecordedEntry[] {
    const common = eventCommon(this.session, event, place);
    const kind = textAt(event, 'kind') ?? '';
    const read = Object.hasOwn(this.readers, kind) ? this.readers[kind] : undefined;
    if (read !== undefined) return read(event, common);
    const aside = Object.hasOwn(ASIDE, kind) ? ASIDE[kind] : undefined;
    if (aside !== undefined) return [{ ...common, kind: 'event', name: aside[0], ...defined({ text: textAt(event, aside[1]) }) }];
    this.onLoss({ reason: 'unknown-record', place, detail: `an event of the kind ${JSON.stringify(event.kind)}: left out` });
    return [];
  }

  private readonly readers: Readonly<Record<string, (event: JsonObject, common: Common) => readonly RecordedEntry[]>> = {
    SystemPromptEvent: (event, common) => [
      { ...common, kind: 'message', role: 'system', origin: 'harness', text: systemPrompt(event, common.place, this.onLoss) },
    ],
    MessageEvent: (event, common) => this.message(event, common),
    ActionEvent: (event, common) => this.action(event, common),
    ObservationEvent: (event, common) => [this.observation(event, common)],
    AgentErrorEvent: (event, common) => [this.answer(event, common, textAt(event, 'error') ?? '', { is_error: true })],
    UserRejectObservation: (event, common) => [this.answer(event, common, textAt(event, 'rejection_reason') ?? '', { is_error: true })],
    Condensation: (event, common) => {
      const dropped = textsAt(event, 'forgotten_event_ids').filter((id) => id !== '');
      return [
        {
          ...common,
          kind: 'compaction',
          ...defined({ summary: textAt(event, 'summary'), dropped: dropped.length === 0 ? undefined : dropped }),
        },
      ];
    },
  };

  private message(event: JsonObject, common: Common): readonly RecordedEntry[] {
    const message = objectAt(event, 'llm_message');
    const { place } = common;
    const extended = partsText(event.extended_content, `${place}.extended_content`, this.onLoss);
    const text = [partsText(message?.content, place, this.onLoss), extended].filter((part) => part !== '').join('\n');
    const role = ROLES.get(textAt(message, 'role') ?? '');
    if (role === undefined) {
      this.onLoss({
        reason: 'unknown-record',
        place,
        detail: `a message with the role ${JSON.stringify(message?.role)}: kept as what the program said`,
      });
    }
    const origin = role === undefined ? 'harness' : (ORIGINS.get(textAt(event, 'source') ?? '') ?? 'harness');
    const thinking = message === undefined ? undefined : chatThinking(message);
    return [{ ...common, kind: 'message', role: role ?? 'user', origin, text, ...defined({ thinking }) }];
  }

  private action(event: JsonObject, common: Common): readonly RecordedEntry[] {
    const { place } = common;
    const text = partsText(event.thought, place, this.onLoss);
    const thinking = chatThinking(event);
    const said: RecordedEntry = { ...common, kind: 'message', role: 'assistant', origin: 'model', text, ...defined({ thinking }) };
    const made = objectAt(event, 'tool_call');
    const { kind: _kind, ...action } = objectAt(event, 'action') ?? {};
    const args = callArguments(made?.arguments ?? objectAt(made, 'function')?.arguments ?? action, place, this.onLoss);
    const id = idAt(event, 'tool_call_id') ?? idAt(made, 'id') ?? idAt(event, 'id') ?? place;
    this.open.set(idAt(event, 'id') ?? place, { id, args });
    const tool = textAt(event, 'tool_name') ?? textAt(made, 'name') ?? 'unknown';
    const call: RecordedEntry = { ...common, kind: 'call', call_id: id, tool, args, ...defined({ cwd: this.cwd }) };
    const response = idAt(event, 'llm_response_id');
    const further = response !== undefined && response === this.response;
    this.response = response;
    // Calls of one answer stand in events of their own; what it said stands in the first.
    return further && text === '' && thinking === undefined ? [call] : [said, call];
  }

  private observation(event: JsonObject, common: Common): RecordedEntry {
    const twin = objectAt(event, 'observation');
    const own = partsText(twin?.content ?? twin?.output, common.place, this.onLoss);
    const metadata = objectAt(twin, 'metadata');
    const text = `${textAt(metadata, 'prefix') ?? ''}${own}${textAt(metadata, 'suffix') ?? ''}`;
    const open = this.opened(event);
    const shell = metadata !== undefined || typeof twin?.exit_code === 'number';
    if (shell) this.cwd = shellDir(twin, own) ?? this.cwd;
    const is_error = twin?.is_error === true || exitFailed(twin);
    const view = { path: textAt(open?.args, 'path'), whole: open?.args.command === 'view' && open.args.view_range === undefined };
    const command = textAt(twin, 'command') ?? textAt(open?.args, 'command') ?? '';
    const shown = is_error ? {} : shell ? shellEvidence(command, own) : editorEvidence(twin, own, view);
    return this.answer(event, common, text, { is_error, ...shown, ...(/<response clipped>/.test(own) ? { truncated: true } : {}) });
  }

  /** The open call of an answer, which is closed with it. */
  private opened(event: JsonObject): OpenCall | undefined {
    const action = idAt(event, 'action_id');
    if (action !== undefined && this.open.has(action)) return this.open.get(action);
    const id = idAt(event, 'tool_call_id');
    return [...this.open.values()].find((call) => call.id === id);
  }

  private answer(
    event: JsonObject,
    common: Common,
    text: string,
    rest: { readonly is_error: boolean; readonly truncated?: boolean } & Evidence,
  ): RecordedEntry {
    const open = this.opened(event);
    for (const [action, call] of this.open) if (call === open) this.open.delete(action);
    const id = open?.id ?? idAt(event, 'tool_call_id') ?? idAt(event, 'action_id') ?? common.place;
    return { ...common, kind: 'result', call_id: id, text, ...rest };
  }
}

/** The prompt of the system with what is added to it for the session. */
export function systemPrompt(event: JsonObject, place: string, onLoss: OnLoss): string {
  const parts = [event.system_prompt, event.dynamic_context].filter((part) => part !== undefined && part !== null);
  return partsText(parts, place, onLoss);
}

/** What the folder's own state says of the session. */
export function sessionOf(session: string, state: JsonObject | undefined, first: JsonObject | undefined): EntryOf<'session'> {
  const model = textAt(objectAt(objectAt(state, 'agent'), 'llm'), 'model');
  return {
    kind: 'session',
    format: 'openhands-sdk',
    native_id: session,
    place: 'events',
    agent: 'OpenHands',
    ...defined({
      model,
      cwd: textAt(objectAt(state, 'workspace'), 'working_dir'),
      started_at: momentOf(first?.timestamp) ?? numberAt(state, 'started_at'),
      system_prompt: first?.kind === 'SystemPromptEvent' ? systemPrompt(first, 'events', () => undefined) : undefined,
    }),
  };
}
