import * as z from 'zod';
import type { Json } from '../../objects/canonical-json.js';

/** The version of the draft that the records follow. */
export const SCHEMA_VERSION = '0.1.1';

const list = <Of extends z.ZodType>(of: Of) => z.array(of).readonly();
const id = z.string().min(1).max(400);
const ids = list(id);
const word = z.string().min(1).max(400);
const count = z.int().nonnegative();
const time = z.iso.datetime();
/** Any JSON; that it is nothing else shows where it is written. */
const json = z.custom<Json>((value) => value !== undefined);
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const version = z.literal(SCHEMA_VERSION);
/** What a record says beside the fields of the draft. */
const metadata = z.record(z.string(), json).readonly().optional();
/** A thing that somebody else's system holds. */
const foreign = z.strictObject({ kind: word, id: word });
const foreigns = list(foreign);

/** Whom a piece of context is visible to. */
export const visibilities = z.enum(['model', 'tool', 'runtime', 'ui', 'user', 'reviewer', 'peer_agent', 'evidence_export']);
const visibility = z.array(visibilities).min(1).readonly();
const scope = z.enum(['turn', 'task', 'session', 'tool_invocation', 'review', 'handoff', 'custom']);
/** What a reader is not shown of an item, and how. */
export const redactions = z.enum(['none', 'masked', 'removed', 'summarized', 'encrypted_ref', 'policy_blocked', 'unknown']);
/** Why an item that was there was left out. */
export const omissions = z.enum([
  'budget_limit',
  'low_relevance',
  'duplicate',
  'stale',
  'policy_blocked',
  'permission_missing',
  'unsupported_media',
  'too_large',
  'sensitive',
  'superseded_by_summary',
  'not_visible_to_target',
  'custom',
]);
/** What happens where a limit would be passed. */
export const overflows = z.enum([
  'reject',
  'truncate_tail',
  'truncate_middle',
  'summarize_oldest',
  'summarize_low_priority',
  'defer_to_retrieval',
  'ask_for_choice',
  'policy_block',
  'custom',
]);
/** Where something was put in. */
export const injectionPoints = z.enum([
  'system_prompt',
  'developer_prompt',
  'message_history',
  'user_message_appendix',
  'tool_argument',
  'tool_visible_resource',
  'runtime_metadata',
  'ui_panel',
  'review_export',
  'peer_agent_message',
  'artifact_input',
  'custom',
]);
/** How a replacement was made. */
export const compactionMethods = z.enum([
  'extractive_summary',
  'abstractive_summary',
  'structured_digest',
  'rolling_summary',
  'semantic_memory_update',
  'human_curated_summary',
  'provider_context_editing',
  'custom',
]);
/** Why a replacement was made. */
export const compactionTriggers = z.enum([
  'manual',
  'token_pressure',
  'session_length',
  'task_boundary',
  'handoff',
  'retention',
  'privacy',
  'provider_context_editing',
  'custom',
]);
/** The events of the draft. */
export const eventClasses = z.enum([
  'context.surface.created',
  'context.surface.updated',
  'context.item.added',
  'context.item.updated',
  'context.item.removed',
  'context.selection.started',
  'context.selection.completed',
  'context.budget.applied',
  'context.assembly.created',
  'context.injection.applied',
  'context.compaction.started',
  'context.compaction.completed',
  'context.summary.created',
  'context.missing.detected',
  'context.missing.requested',
  'context.missing.resolved',
  'context.redaction.applied',
  'context.exported',
]);
const contextKinds = z.enum([
  'user_message',
  'system_prompt',
  'developer_instruction',
  'session_history',
  'thread_summary',
  'working_memory',
  'durable_memory',
  'knowledge_pack_item',
  'document_excerpt',
  'file_excerpt',
  'artifact_ref',
  'tool_result',
  'browser_state',
  'runtime_state',
  'team_memory',
  'policy_note',
  'external_resource',
  'manual_note',
  'computed_summary',
  'peer_agent_message',
  'retrieval_result',
  'custom',
]);
const truncated = list(z.strictObject({ item_ref: id, reason: omissions, metadata }));
const producer = z.strictObject({ name: z.literal('palimpsest'), contract: z.literal('agent-context') });

/**
 * The thirteen objects as this program writes them: the draft's own fields with the enumerations of its prose, and no field that it does not name. Ours are narrower than its
 * schemas, which let anything by; what has no schema there (window, injection, summary) has one here.
 */
export const SHAPES = {
  context_envelope: z.strictObject({
    schema_version: version,
    context_id: id,
    scope,
    lifecycle: z.enum(['draft', 'available', 'selected', 'assembled', 'injected', 'compacted', 'redacted', 'expired', 'archived']),
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
    content_mode: z.enum(['inline', 'ref', 'summary', 'embedded_resource', 'resource_link', 'artifact_ref', 'tool_result_ref', 'opaque']),
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
    selector: z.strictObject({ type: z.enum(['message_part', 'byte_range', 'line_range', 'custom']), value: json }).optional(),
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
    // A count means nothing without the name of what counted it.
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
    coverage: z.strictObject({ replaced: ids, shortened: ids, preserved: z.string(), before_tokens: count, after_tokens: count }),
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
/** What stands beside the draft's own fields. */
export type Metadata = Readonly<Record<string, Json>>;

/** A moment as the draft writes it. */
export const timeText = (at: number): string => new Date(at).toISOString();
