import * as z from 'zod';

/** The readers to whom a piece of context is visible. */
export const visibilities = z.enum([
  'model',
  'tool',
  'runtime',
  'ui',
  'user',
  'reviewer',
  'peer_agent',
  'evidence_export',
]);
/** Why an available item was left out. */
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
/** How a limit is enforced. */
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
/** Where text was injected. */
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
/** How entries were replaced. */
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
/** Why entries were replaced. */
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
/** The event classes of the draft. */
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
/** The kinds of context items. */
export const contextKinds = z.enum([
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
