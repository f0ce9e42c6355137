import * as z from 'zod';
import { checkpointSchema } from './checkpoint.js';

const name = z.string().min(1);

/** A conversation's state in Tyrum's exact fields. */
export const conversationStateSchema = z.strictObject({
  version: z.literal(1),
  compacted_through_message_id: name.optional().describe('The last message that the checkpoint replaces'),
  recent_message_ids: z.array(name).describe('The unchanged messages after it'),
  checkpoint: checkpointSchema.nullable(),
  pending_approvals: z
    .array(
      z.strictObject({
        approval_id: name,
        approved: z.boolean().optional(),
        state: z.enum(['approved', 'cancelled', 'denied', 'expired', 'pending']),
        tool_call_id: name,
        tool_name: name,
      }),
    )
    .describe('Those that wait for an answer, and those whose call still waits for its result'),
  pending_tool_state: z.array(z.strictObject({ tool_call_id: name, tool_name: name, summary: z.string() })),
  updated_at: z.iso.datetime(),
});

/** A conversation's state in Tyrum's exact fields. */
export type ConversationState = z.output<typeof conversationStateSchema>;
