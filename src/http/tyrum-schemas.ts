import * as z from 'zod';
import { tyrumReportSchema } from '../interop/tyrum/context-report.js';

const count = z.int().nonnegative();
const name = z.string().min(1).max(400);
const names = z.array(name).max(1_000).optional();

/** The bodies of requests of Tyrum's contract. */
export const TYRUM_REQUESTS = {
  Tools: z
    .strictObject({
      tools: z
        .array(
          z.strictObject({
            id: name,
            chars: count.optional().describe('Characters of its schema as the model is given it; counted from schema where absent'),
            schema: z.unknown().optional().describe('What the model is given of it; only its size is kept'),
          }),
        )
        .max(2_000),
      skills: names,
      mcp_servers: names,
    })
    .describe('Tells which tools the model is offered'),
  TyrumPrompt: z
    .strictObject({
      max_messages: count.optional().describe('The most messages; 0 for no limit (default), else 8 or more'),
      tool_prune_keep_last_messages: count
        .optional()
        .describe('Calls and results before the last so many messages go (default 4, least 2)'),
    })
    .describe('Asks for what a model is sent, pruned'),
} as const;

/** The bodies of answers of Tyrum's contract. */
export const TYRUM_ANSWERS = {
  TyrumPromptMessages: z.object({
    messages: z.array(
      z.object({
        id: name.describe('The same at every moment'),
        role: z.enum(['system', 'user', 'assistant', 'tool']),
        content: z.string(),
        tool_calls: z.array(z.object({ tool_call_id: name, tool_name: name, args: z.unknown() })).optional(),
        tool_call_id: name.optional(),
        tool_name: name.optional(),
      }),
    ),
    pruned: z.object({ results: z.array(name), messages: z.array(name) }).describe('What was left out'),
  }),
  ToolsAnnounced: z.object({ tools: count, total_chars: count }),
} as const;

const tyrumReportRow = tyrumReportSchema.extend({
  turn_id: z.string().describe('SESSION@turn:7'),
  created_at: z.string().describe('ISO 8601, UTC'),
});

/** The bodies of answers about contexts in the fields of Tyrum. */
export const TYRUM_REVIEW_ANSWERS = {
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
