import type { Json } from '../../objects/canonical-json.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { hashText } from '../../objects/hashes.js';
import type { SetChanges } from '../../objects/sets.js';
import type { Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import { isJsonObject } from '../../values/json-object.js';
import { REDACTION, type Redactor } from '../projection/redaction-rules.js';
import type { Bundle } from './bundle-parts.js';
import type { ItemTable } from './item-table.js';
import type { FactRecord } from './recorded-facts.js';
import { eventClasses } from './shape-words.js';
import { type Metadata, SCHEMA_VERSION, type Shaped, timeText } from './shapes.js';
import { withoutStatus } from './status-scan.js';

type ContextEvent = Shaped<'context_event'>;
type EventType = ContextEvent['event_type'];

/** Ids of the runtime that a record passes on to its event. */
const RUNTIME_IDS = ['task_id', 'run_id', 'attempt_id', 'action_id', 'evidence_id'] as const;

/** The input of `contextEvents` besides the bundle. */
export interface EventSource {
  readonly session: string;
  readonly steps: readonly Step[];
  readonly records: readonly FactRecord[];
  readonly redactor: Redactor;
  readonly table: ItemTable;
}

interface EventParts {
  readonly type: EventType;
  readonly at: string;
  readonly subject: string;
  readonly data?: Metadata | undefined;
  /** Metadata of the event's subject. The turn, the step and the runtime ids come from here. */
  readonly metadata?: Metadata | undefined;
}

const textIn = (metadata: Metadata | undefined, name: string): string | undefined => {
  const value = metadata?.[name];
  return typeof value === 'string' && value !== '' ? value.slice(0, 400) : undefined;
};
const numberIn = (metadata: Metadata | undefined, name: string): number | undefined => {
  const value = metadata?.[name];
  return typeof value === 'number' ? value : undefined;
};

/** Collects events. Merges those of the same kind, subject and time. */
class EventList {
  readonly #events = new Map<string, ContextEvent>();
  readonly #context: string;
  readonly #session: string;
  readonly #turn: string;

  constructor(envelope: Bundle['envelope'], session: string) {
    this.#context = envelope.context_id;
    this.#session = session;
    this.#turn = `turn:${numberIn(envelope.metadata, 'turn') ?? 0}`;
  }

  get all(): readonly ContextEvent[] {
    return [...this.#events.values()].sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  }

  add({ type, at, subject, data, metadata }: EventParts): void {
    const turn =
      textIn(metadata, 'turn_id') ??
      (numberIn(metadata, 'turn') === undefined ? this.#turn : `turn:${numberIn(metadata, 'turn')}`);
    const seq = numberIn(metadata, 'seq');
    const event_id = `event-${hashText(JSON.stringify([this.#session, type, subject, at, data ?? null])).slice(0, 24)}`;
    this.#events.set(event_id, {
      schema_version: SCHEMA_VERSION,
      event_id,
      event_type: type,
      source: `palimpsest:///sessions/${encodeURIComponent(this.#session)}`.slice(0, 400),
      subject,
      time: at,
      context_id: this.#context,
      session_id: this.#session,
      thread_id: this.#session,
      turn_id: turn,
      ...defined({
        step_id: textIn(metadata, 'step_id') ?? (seq === undefined ? undefined : `step:${seq}`),
        tool_call_id: textIn(metadata, 'tool_call_id'),
        data,
      }),
      ...defined(Object.fromEntries(RUNTIME_IDS.map((name) => [name, textIn(metadata, name)]))),
    });
  }
}

/** Returns a step's set changes: for each verb, the ids of its items. */
function changeData(changes: SetChanges, table: ItemTable): Metadata | undefined {
  const named = (['activate', 'deactivate', 'pin', 'unpin'] as const).flatMap((verb) => {
    const items = (changes[verb] ?? []).filter((id) => table.has(id));
    return items.length === 0 ? [] : [[verb, table.refs(items)] as const];
  });
  return named.length === 0 ? undefined : Object.fromEntries(named);
}

/**
 * Converts a recorded event of a type in the Agent Context draft. Drops statuses and redacted text.
 */
function recordedEvent(
  { turn, seq, at, body }: ContextRecord<'event'>,
  { redactor, table }: EventSource,
): EventParts | undefined {
  const type = eventClasses.options.find((known) => known === body.type);
  if (type === undefined) return undefined;
  const data = isJsonObject(body.data) ? body.data : { value: body.data };
  const { exact: _exact, replacement: _replacement, ...said } = data as Readonly<Record<string, Json>>;
  const shown = withoutStatus(redactor.without(type === REDACTION ? said : (data as Metadata))) as Metadata;
  const subject =
    body.subject === undefined ? 'session' : table.has(body.subject) ? table.ref(body.subject) : body.subject;
  return { type, at: timeText(at), subject, data: shown, metadata: { ...shown, turn, seq } };
}

/**
 * Returns the ordered events of a bundle. They show how the session's steps and records changed its
 * context. They never state the status of a turn or call.
 */
export function contextEvents(bundle: Omit<Bundle, 'events'>, source: EventSource): readonly ContextEvent[] {
  const { envelope, surfaces, items, selections, budgets, assemblies, injections, compactions, summaries, missing } =
    bundle;
  const { session, steps, records, table } = source;
  const events = new EventList(envelope, session);
  for (const surface of surfaces)
    events.add({ type: 'context.surface.created', at: surface.created_at, subject: surface.surface_id });
  for (const { item_id, context_kind, created_at, freshness, metadata } of items) {
    const isFile = context_kind === 'file_excerpt';
    const type = isFile ? (freshness === 'deleted' ? 'removed' : 'updated') : 'added';
    events.add({ type: `context.item.${type}`, at: created_at, subject: item_id, metadata });
  }
  for (const { turn, seq, at, changes } of steps) {
    const data = changeData(changes, table);
    if (data !== undefined)
      events.add({
        type: 'context.selection.completed',
        at: timeText(at),
        subject: 'selection-sets',
        data,
        metadata: { turn, seq },
      });
  }
  for (const { selection_id, created_at: at, metadata } of selections)
    events.add({ type: 'context.selection.completed', at, subject: selection_id, metadata });
  for (const { budget_id, created_at: at, metadata } of budgets)
    events.add({ type: 'context.budget.applied', at, subject: budget_id, metadata });
  for (const { assembly_id, created_at: at, metadata } of assemblies)
    events.add({ type: 'context.assembly.created', at, subject: assembly_id, metadata });
  for (const { injection_id, created_at: at, metadata } of injections)
    events.add({ type: 'context.injection.applied', at, subject: injection_id, metadata });
  const replaced = new Map(compactions.map((compaction) => [compaction.summary_ref, compaction]));
  for (const { compaction_id, created_at: at, metadata } of compactions) {
    events.add({ type: 'context.compaction.started', at, subject: compaction_id, metadata });
    events.add({ type: 'context.compaction.completed', at, subject: compaction_id, metadata });
  }
  for (const { summary_id } of summaries) {
    const by = replaced.get(summary_id);
    if (by !== undefined)
      events.add({ type: 'context.summary.created', at: by.created_at, subject: summary_id, metadata: by.metadata });
  }
  for (const { missing_id, created_at: at, status, metadata } of missing) {
    events.add({ type: 'context.missing.detected', at, subject: missing_id, metadata });
    if (status === 'requested' || status === 'waiting')
      events.add({ type: 'context.missing.requested', at, subject: missing_id, metadata });
    if (status === 'resolved') events.add({ type: 'context.missing.resolved', at, subject: missing_id, metadata });
  }
  for (const record of records) {
    const event = record.kind === 'event' ? recordedEvent(record, source) : undefined;
    if (event !== undefined) events.add(event);
  }
  events.add({ type: 'context.exported', at: envelope.created_at, subject: envelope.context_id });
  return events.all;
}
