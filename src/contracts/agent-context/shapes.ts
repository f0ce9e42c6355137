import * as z from 'zod';
import type { Json } from '../../objects/canonical-json.js';
import { redactions } from '../projection/redaction-rules.js';
import {
  compactionMethods,
  compactionTriggers,
  contextKinds,
  eventClasses,
  injectionPoints,
  omissions,
  overflows,
  visibilities,
} from './shape-words.js';

/** The version of the Agent Context draft that the objects follow. */
export const SCHEMA_VERSION = '0.1.1';

const list = <Of extends z.ZodType>(of: Of) => z.array(of).readonly();
const id = z.string().min(1).max(400);
const ids = list(id);
const word = z.string().min(1).max(400);
const count = z.int().nonnegative();
const time = z.iso.datetime();
/** Accepts any JSON value. The writer checks that it is JSON. */
const json = z.custom<Json>((value) => value !== undefined);
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const version = z.literal(SCHEMA_VERSION);
/** Additional fields of a record. */
const metadata = z.record(z.string(), json).readonly().optional();
/** A reference to an object in another system. */
const foreign = z.strictObject({ kind: word, id: word });
const foreigns = list(foreign);

const visibility = z.array(visibilities).min(1).readonly();
const scope = z.enum(['turn', 'task', 'session', 'tool_invocation', 'review', 'handoff', 'custom']);
const truncated = list(z.strictObject({ item_ref: id, reason: omissions, metadata }));
const producer = z.strictObject({ name: z.literal('palimpsest'), contract: z.literal('agent-context') });

/**
 * The draft's thirteen objects as this program writes them: the draft's fields, the enumerations
 * from its prose, and no other fields. These shapes are stricter than the draft's schemas. The
 * draft has no schema for window, injection and summary.
 */
export const SHAPES = {
  context_envelope: z.strictObject({
    schema_version: version,
    context_id: id,
    scope,
    lifecycle: z.enum([
      'draft',
      'available',
      'selected',
      'assembled',
      'injected',
      'compacted',
      'redacted',
      'expired',
      'archived',
    ]),
    created_at: time,
    producer,
    runtime_refs: foreigns,
    surface_refs: ids,
    item_refs: ids,
    selection_refs: ids,
    budget_ref: id,
    assembly_refs: ids,
    injection_refs: ids,
    compaction_refs: ids,
    missing_context_refs: ids,
    policy_refs: ids,
    evidence_refs: foreigns,
    metadata,
  }),
  context_surface: z.strictObject({
    schema_version: version,
    surface_id: id,
    scope,
    surface_kind: z.enum([
      'turn_surface',
      'task_surface',
      'session_surface',
      'tool_surface',
      'review_surface',
      'handoff_surface',
      'custom',
    ]),
    producer,
    available_source_refs: ids,
    available_item_refs: ids,
    policy_refs: ids.optional(),
    visibility,
    created_at: time,
    metadata,
  }),
  context_item: z.strictObject({
    schema_version: version,
    item_id: id,
    context_kind: contextKinds,
    title: z.string().optional(),
    content_mode: z.enum([
      'inline',
      'ref',
      'summary',
      'embedded_resource',
      'resource_link',
      'artifact_ref',
      'tool_result_ref',
      'opaque',
    ]),
    content: json.optional(),
    content_ref: foreign.optional(),
    mime_type: word.optional(),
    source_refs: ids,
    token_estimate: count.optional(),
    byte_size: count.optional(),
    freshness: z.enum(['current', 'stale', 'unread', 'deleted']).optional(),
    trust_level: z.enum(['user', 'model', 'harness', 'tool', 'unknown']),
    sensitivity: word.optional(),
    redaction_state: redactions,
    policy_refs: ids.optional(),
    visibility,
    created_at: time,
    metadata,
  }),
  context_source_ref: z.strictObject({
    schema_version: version,
    source_id: id,
    uri: z.string().min(1),
    source_kind: z.enum(['file', 'session', 'tool_call', 'record']),
    selector: z
      .strictObject({ type: z.enum(['message_part', 'byte_range', 'line_range', 'custom']), value: json })
      .optional(),
    digest: digest.optional(),
    external_mappings: list(z.strictObject({ system: word, field: word, value: word })).optional(),
    modified_at: time.optional(),
    metadata,
  }),
  context_selection: z.strictObject({
    schema_version: version,
    selection_id: id,
    surface_id: id,
    query: z.string().optional(),
    intent: z.string().optional(),
    candidate_item_refs: ids,
    selected_item_refs: ids,
    omitted_item_refs: list(z.strictObject({ item_ref: id, reason: omissions, metadata })),
    ranking_signals: z.strictObject({ user_pin: ids }).optional(),
    selection_policy: word,
    budget_ref: id.optional(),
    rationale: z.string().optional(),
    created_at: time,
    metadata,
  }),
  context_budget: z.strictObject({
    schema_version: version,
    budget_id: id,
    target: word,
    max_tokens: count.optional(),
    reserved_tokens: count.optional(),
    actual_tokens: count,
    max_bytes: count.optional(),
    actual_bytes: count.optional(),
    max_items: count.optional(),
    actual_items: count.optional(),
    overflow_strategy: overflows,
    truncation_records: truncated,
    window_segments: list(foreign),
    created_at: time,
    // A token count has no meaning without the name of its counter.
    metadata: z.object({ counter: word }).catchall(json),
  }),
  context_window: z.strictObject({
    schema_version: version,
    window_id: id,
    target: word,
    budget_ref: id,
    segments: list(
      z.strictObject({
        segment_id: id,
        role: word,
        target: word,
        reserved_tokens: count.optional(),
        actual_tokens: count,
        item_refs: ids,
        order: count,
        truncation_records: truncated,
      }),
    ),
    created_at: time,
    metadata,
  }),
  context_assembly: z.strictObject({
    schema_version: version,
    assembly_id: id,
    target: word,
    ordered_blocks: list(
      z.strictObject({
        block_id: id,
        item_refs: ids,
        content_ref: foreign.optional(),
        wrapper: word,
        position: count,
        visibility,
        token_estimate: count.optional(),
        hash: digest.optional(),
        redaction_state: redactions,
      }),
    ),
    wrapping_policy: word,
    visibility,
    budget_ref: id.optional(),
    source_item_refs: ids,
    redaction_state: redactions,
    created_at: time,
    metadata,
  }),
  context_injection: z.strictObject({
    schema_version: version,
    injection_id: id,
    assembly_id: id,
    target: word,
    injection_point: injectionPoints,
    native_id: word.optional(),
    visibility,
    final_ref: foreign,
    hash: digest,
    created_at: time,
    metadata,
  }),
  context_compaction: z.strictObject({
    schema_version: version,
    compaction_id: id,
    scope,
    source_item_refs: ids,
    summary_ref: id.optional(),
    method: compactionMethods,
    trigger: compactionTriggers,
    coverage: z.strictObject({
      replaced: ids,
      shortened: ids,
      preserved: z.string(),
      before_tokens: count,
      after_tokens: count,
    }),
    loss_notes: z.array(z.string()).min(1).readonly(),
    validation: z.strictObject({ by: word, identifiers: count, identifiers_not_kept: list(z.string()) }).optional(),
    replacement_policy: z.string().min(1),
    created_at: time,
    metadata: z.object({ counter: word }).catchall(json),
  }),
  context_summary: z.strictObject({
    schema_version: version,
    summary_id: id,
    summary_kind: z.enum(['thread_summary']),
    item_ref: id,
    content: z.string().optional(),
    source_item_refs: ids,
    coverage: z.strictObject({ replaced: ids }),
    loss_notes: z.array(z.string()).min(1).readonly(),
    open_questions: list(z.string()),
    freshness: z.enum(['current', 'stale']),
    validation: z.strictObject({ by: word, identifiers: count, identifiers_not_kept: list(z.string()) }),
    refresh_policy: z.string().min(1),
    metadata,
  }),
  missing_context: z.strictObject({
    schema_version: version,
    missing_id: id,
    scope,
    question: z.string().min(1),
    needed_for: z.string().optional(),
    severity: z.enum(['info', 'low', 'medium', 'high', 'blocking']),
    candidate_sources: list(z.strictObject({ source_ref: id.optional(), uri: z.string().optional() })),
    blocked_actions: list(z.string()),
    requested_from: word.optional(),
    status: z.enum(['open', 'requested', 'waiting', 'resolved', 'declined', 'blocked', 'expired']),
    resolution_refs: ids,
    created_at: time,
    metadata: z.object({ owner: word, safe_summary: z.string().min(1) }).catchall(json),
  }),
  context_event: z.strictObject({
    schema_version: version,
    event_id: id,
    event_type: eventClasses,
    source: word,
    subject: id.optional(),
    time,
    context_id: id,
    session_id: id,
    thread_id: id,
    turn_id: id,
    task_id: id.optional(),
    run_id: id.optional(),
    attempt_id: id.optional(),
    step_id: id.optional(),
    tool_call_id: id.optional(),
    action_id: id.optional(),
    evidence_id: id.optional(),
    data: z.record(z.string(), json).optional(),
  }),
} as const;

/** The name of an object of the draft. */
export type ShapeName = keyof typeof SHAPES;
/** An object of the draft as this program writes it. */
export type Shaped<Name extends ShapeName> = z.output<(typeof SHAPES)[Name]>;
/** Additional fields of an object. */
export type Metadata = Readonly<Record<string, Json>>;

/** Formats a time as the draft writes it. */
export const timeText = (at: number): string => new Date(at).toISOString();
