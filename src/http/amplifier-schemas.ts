import * as z from 'zod';
import { amplifierMessageSchema } from '../interop/amplifier/amplifier-message.js';

const count = z.int().nonnegative();
const share = z.number().gt(0).max(1);
/** A session waits for the whole of a request: a longer list comes in parts. */
const MOST_MESSAGES = 10_000;
const named = z
  .array(
    z.strictObject({
      id: z.string().min(1).max(180).describe('A name of its own: sent again under it, it is taken once'),
      message: amplifierMessageSchema,
    }),
  )
  .max(MOST_MESSAGES);

/** The bodies of requests of Amplifier's context manager. */
export const AMPLIFIER_REQUESTS = {
  AmplifierMessages: z.strictObject({ messages: named }).describe('Messages that are added to the list'),
  AmplifierList: z
    .strictObject({
      messages: named,
      replace: z.boolean().optional().describe('Take a list that does not fit ours instead of it'),
    })
    .describe('A whole list'),
  AmplifierView: z
    .strictObject({
      budget: z.int().min(1).describe('The most tokens of the view'),
      compact_threshold: share.optional().describe('Share of the budget above which the view gets smaller (default 1)'),
      target_usage: share.optional().describe('Share of the budget that it is brought down to then (default 0.75)'),
      protected_recent: z
        .number()
        .min(0)
        .max(1)
        .optional()
        .describe('Share of the newest messages whose turns stay if the budget allows'),
      protected_tool_results: count
        .optional()
        .describe('Newest results that stay whole if the budget allows (default 3)'),
      max_tool_result_bytes: z.int().min(1).optional().describe('Larger results are shown without their middle'),
      summary: z.boolean().optional().describe('Whether a summary stands for what is left out (default true)'),
      preserve_system: z
        .boolean()
        .optional()
        .describe('Whether system messages behind the prompt are shown (default true)'),
    })
    .describe('Asks for the list within a limit'),
} as const;

const message = amplifierMessageSchema;

/** The bodies of its answers. */
export const AMPLIFIER_ANSWERS = {
  AmplifierAdded: z.object({ added: count, known: count }),
  AmplifierMessageList: z.object({ messages: z.array(message) }),
  AmplifierListSet: z.object({ outcome: z.enum(['imported', 'extended', 'ignored', 'replaced']) }),
  AmplifierCleared: z.object({ cleared: count.describe('Messages that the list had') }),
  AmplifierMessagesView: z.object({
    messages: z.array(message),
    tokens: count,
    counter: z.string().describe('What they were counted with'),
    limit: count,
    all: count.describe('Messages of the whole list'),
    lines: count.describe('Results that stand as a line in this view'),
    gone: count.describe('Messages that do not stand in it'),
    compaction: z
      .object({
        before_tokens: count,
        after_tokens: count,
        before_messages: count,
        after_messages: count,
        steps: z.array(z.string()).describe('How it got smaller, in order'),
        lines: count,
        gone: count,
        cut: count,
        summary: z.string().nullable(),
      })
      .nullable()
      .describe('Null where this view begins with the whole view before it'),
  }),
} as const;
