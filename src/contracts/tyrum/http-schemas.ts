import * as z from 'zod';
import { checkpointSchema } from './checkpoint.js';
import { tyrumReportSchema } from './context-report.js';
import { conversationStateSchema } from './conversation-state.js';

const count = z.int().nonnegative();
const share = z.number().positive().max(1).optional();
const toolName = z.string().min(1).max(400);
const toolNames = z.array(toolName).max(1_000).optional();

const agentName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@+-]{0,199}$/)
  .describe('The agent of the memory: letters, digits and . _ @ + -');

const memoryItem = z.record(z.string(), z.unknown()).describe("An item in the fields of Tyrum's MemoryItem");

const messages = z.array(
  z.object({
    id: toolName.describe('Constant over time; `checkpoint` for the message that replaces compacted ones'),
    role: z.enum(['system', 'user', 'assistant', 'tool']),
    content: z.string(),
    tool_calls: z.array(z.object({ tool_call_id: toolName, tool_name: toolName, args: z.unknown() })).optional(),
    tool_call_id: toolName.optional(),
    tool_name: toolName.optional(),
  }),
);

/** Request bodies of Tyrum's operations. */
export const TYRUM_REQUESTS = {
  Tools: z
    .strictObject({
      tools: z
        .array(
          z.strictObject({
            id: toolName,
            chars: count
              .optional()
              .describe('Characters of its schema as the model receives it; default: the length of schema'),
            schema: z.unknown().optional().describe('The schema as the model receives it; only its size is stored'),
          }),
        )
        .max(2_000),
      skills: toolNames,
      mcp_servers: toolNames,
    })
    .describe('Announces the tools of the model'),
  TyrumPrompt: z
    .strictObject({
      max_messages: count
        .optional()
        .describe('Maximum number of messages; 0 for no limit (default), otherwise at least 8'),
      tool_prune_keep_last_messages: count
        .optional()
        .describe('Number of newest messages whose calls and results stay (default 4, at least 2)'),
    })
    .describe('Requests the pruned prompt'),
  TyrumObligations: z
    .strictObject({
      approvals: z
        .array(
          z.strictObject({
            approval_id: toolName,
            state: z.enum(['approved', 'cancelled', 'denied', 'expired', 'pending']),
            text: z.string().max(10_000).optional().describe('The action to approve; default: as requested'),
            tool_call_id: toolName.optional(),
            tool_name: toolName.optional(),
            reason: z.string().max(10_000).optional(),
          }),
        )
        .max(1_000)
        .optional(),
      calls: z
        .array(z.strictObject({ tool_call_id: toolName, tool_name: toolName, args: z.unknown().optional() }))
        .max(1_000)
        .optional()
        .describe('Calls without a result yet; each ends when its result is reported'),
      notes: z
        .array(
          z.strictObject({
            name: toolName.describe('A later note replaces an earlier one of the same name'),
            note: z.enum(['fact', 'decision', 'todo', 'constraint', 'question', 'goal', 'done']),
            text: z.string().min(1).max(10_000),
            source: z.string().max(400).optional(),
            open: z.boolean().optional().describe('False once it no longer applies'),
          }),
        )
        .max(1_000)
        .optional()
        .describe('Facts that checkpoints must state: constraints, decisions, open work and questions, findings'),
    })
    .describe('Reports pending items and facts to keep'),
  TyrumMemory: z
    .strictObject({
      agent: agentName,
      put: z
        .array(z.unknown())
        .max(1_000)
        .optional()
        .describe(
          'Items without ids: kind with its fields, tags, sensitivity, provenance; memory_item_id ' +
            'corrects the item with that id',
        ),
      forget: z
        .array(
          z.strictObject({
            memory_item_id: z.uuid(),
            deleted_by: z.enum(['user', 'operator', 'system']).optional().describe('Default user'),
            reason: z.string().min(1).max(400).optional(),
          }),
        )
        .max(1_000)
        .optional(),
      budget: z
        .strictObject({ max_items: count, max_chars: count })
        .optional()
        .describe(
          'Consolidates: removes repetition, then shortens and forgets the least valuable items; never those ' +
            'tagged canonical',
        ),
      limit: z
        .int()
        .positive()
        .optional()
        .describe('Maximum number of items and tombstones in the answer, newest first; default: all'),
    })
    .describe('Changes what an agent remembers, all of it or nothing'),
  TyrumRecall: z
    .strictObject({
      agent: agentName,
      query: z
        .string()
        .min(1)
        .max(2_000)
        .optional()
        .describe('Words to search for; without them, the most valuable items'),
      limit: z.int().positive().max(200).optional().describe('Items (default 8)'),
      max_chars: z.int().positive().max(200_000).optional().describe('Maximum characters of the text (default 4000)'),
      sensitive: z.boolean().optional().describe('Also include items marked as sensitive'),
      call_id: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe("The harness's id of the call; reporting it twice records it once"),
      turn: z.string().min(1).max(180).optional(),
    })
    .describe('Recalls what an agent remembers'),
  TyrumCompaction: z
    .strictObject({
      max_tokens: z.int().positive().describe('Maximum tokens of a request, including the reserve'),
      reserved_tokens: count
        .optional()
        .describe(
          "Part of max_tokens for tool schemas and the answer. Default: a quarter of the announced tools' schemas in " +
            'characters',
        ),
      reported_tokens: count.optional().describe('Tokens of the last request, as the provider reported them'),
      threshold: share.describe('Share of max_tokens above which token_pressure compacts (default 1)'),
      target: share.describe('Share to compact the prompt down to (default 0.5)'),
      keep_last_messages: z
        .int()
        .positive()
        .optional()
        .describe('Newest messages whose turns stay while the limit allows (default 2)'),
      keep_results: count.optional().describe('Newest results that stay in full while the limit allows (default 3)'),
      checkpoint_tokens: count
        .optional()
        .describe('Maximum tokens of the checkpoint without its obligations (default: a tenth of the limit)'),
      reason: z
        .enum(['token_pressure', 'manual', 'overflow'])
        .optional()
        .describe(
          'token_pressure (default) compacts above the threshold; the other reasons compact to the target at once',
        ),
      preview: z.boolean().optional().describe('Only preview the result; record nothing'),
      checkpoint: z
        .unknown()
        .optional()
        .describe(
          'A CheckpointSummary that a model wrote for a preview, or its JSON as text. It is audited, and refused ' +
            'with 409 if it fails',
        ),
      writer: toolName.optional().describe('Its author (default model)'),
      memory: z
        .strictObject({
          agent: agentName,
          item: z
            .unknown()
            .optional()
            .describe(
              'The one thing to remember of the removed messages; default: constraints, decisions and findings',
            ),
        })
        .optional()
        .describe(
          'Remember at most one item of the removed messages, once and without secrets; a failure does not stop the ' +
            'compaction',
        ),
      last_try: z
        .boolean()
        .optional()
        .describe(
          'Replaces a checkpoint that fails the audit by one made without a model, instead of refusing it with 409',
        ),
    })
    .describe('Requests a conversation within a token limit. Stores only the record of the compaction'),
} as const;

const tyrumReportRow = tyrumReportSchema.extend({
  turn_id: z.string().describe('SESSION@turn:7'),
  created_at: z.string().describe('ISO 8601, UTC'),
});

/** Response bodies of Tyrum's operations. */
export const TYRUM_ANSWERS = {
  TyrumMemoryChanged: z.object({
    status: z.literal('ok'),
    agent_id: z.string(),
    written: z.array(z.string()),
    forgotten: z.array(z.string()),
    items: z.array(memoryItem).describe('Oldest first'),
    tombstones: z.array(z.record(z.string(), z.unknown())),
  }),
  TyrumRecalled: z.object({
    status: z.literal('ok'),
    call_id: z.string(),
    tool_id: z.enum(['memory.search', 'memory.seed']),
    text: z.string().describe("The call's result, which is all that a model receives"),
    items: z.array(memoryItem),
  }),
  TyrumObligationsKept: z.object({ approvals: count, calls: count, notes: count }),
  TyrumPromptMessages: z.object({
    messages,
    pruned: z.object({ results: z.array(toolName), messages: z.array(toolName) }).describe('Omitted items'),
  }),
  ToolsAnnounced: z.object({ tools: count, total_chars: count }),
  TyrumConversationState: z.object({
    status: z.literal('ok'),
    conversation_id: z.string(),
    state: conversationStateSchema,
  }),
  TyrumCompacted: z.object({
    status: z.literal('ok'),
    compacted: z.boolean().describe('Whether the prompt had to shrink'),
    recorded: z.boolean(),
    state: conversationStateSchema,
    messages,
    tokens: count,
    before_tokens: count,
    reserved_tokens: count,
    limit: count.describe('Of the messages'),
    counter: z.string(),
    checkpoint_by: z.string().nullable().describe('digest: made without a model'),
    refused: z.array(z.string()).describe('Errors of rejected checkpoints'),
    flush: z
      .object({
        outcome: z.enum(['written', 'nothing', 'known', 'refused', 'failed']),
        hash: z.string(),
        memory_item_id: z.string().nullable(),
        why: z.string().nullable(),
      })
      .nullable()
      .describe('Result of remembering'),
    to_summarise: z
      .object({
        message_ids: z.array(z.string()),
        critical_identifiers: z.array(z.string()),
        checkpoint: checkpointSchema,
      })
      .nullable()
      .describe('Messages that the checkpoint replaces, items that it must name, and the one made without a model'),
  }),
  TyrumReport: z.object({ status: z.literal('ok'), report: tyrumReportRow }),
  TyrumReports: z.object({ status: z.literal('ok'), reports: z.array(tyrumReportRow).describe('Newest first') }),
  TyrumTools: z.object({
    status: z.literal('ok'),
    conversation_id: z.string(),
    tools: z.array(z.object({ id: z.string(), chars: count })),
    total_chars: count,
    skills: z.array(z.string()),
    mcp_servers: z.array(z.string()),
  }),
} as const;

/** The parsed body of a request. */
export type RequestBody<N extends keyof typeof TYRUM_REQUESTS> = z.output<(typeof TYRUM_REQUESTS)[N]>;
/** The body of an answer, as sent. */
export type AnswerBody<N extends keyof typeof TYRUM_ANSWERS> = z.input<(typeof TYRUM_ANSWERS)[N]>;
