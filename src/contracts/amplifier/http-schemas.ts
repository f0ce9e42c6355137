import * as z from 'zod';
import { REQUESTS } from '../../http/api-schemas.js';
import { amplifierMessageSchema } from './amplifier-message.js';

const count = z.int().nonnegative();
const share = z.number().gt(0).max(1);
/**
 * Maximum number of messages per request. A request blocks its session until it is complete, so
 * clients send longer lists in parts.
 */
const MOST_MESSAGES = 10_000;
const named = z
  .array(
    z.strictObject({
      id: z.string().min(1).max(180).describe('Unique name; repeated requests with it are applied once'),
      message: amplifierMessageSchema,
    }),
  )
  .max(MOST_MESSAGES);

/** Request bodies of Amplifier's context manager. */
export const AMPLIFIER_REQUESTS = {
  Nothing: REQUESTS.Nothing,
  AmplifierMessages: z.strictObject({ messages: named }).describe('Messages to add to the list'),
  AmplifierList: z
    .strictObject({
      messages: named,
      replace: z.boolean().optional().describe('Replace the stored list if the given one does not fit it'),
    })
    .describe('A whole list'),
  AmplifierView: z
    .strictObject({
      budget: z.int().min(1).describe('Maximum tokens of the view'),
      compact_threshold: share.optional().describe('Share of the budget above which the view shrinks (default 1)'),
      target_usage: share.optional().describe('Share of the budget to shrink to (default 0.75)'),
      protected_recent: z
        .number()
        .min(0)
        .max(1)
        .optional()
        .describe('Share of the newest messages whose turns stay if the budget allows'),
      protected_tool_results: count
        .optional()
        .describe('Number of newest results that stay whole if the budget allows (default 3)'),
      max_tool_result_bytes: z.int().min(1).optional().describe('Larger results are shown without their middle'),
      summary: z.boolean().optional().describe('Whether a summary replaces omitted messages (default true)'),
      preserve_system: z
        .boolean()
        .optional()
        .describe('Whether system messages after the prompt are shown (default true)'),
    })
    .describe('Requests the list within a limit'),
} as const;

const message = amplifierMessageSchema;

/** Response bodies of Amplifier's context manager. */
export const AMPLIFIER_ANSWERS = {
  AmplifierAdded: z.object({ added: count, known: count }),
  AmplifierMessageList: z.object({ messages: z.array(message) }),
  AmplifierListSet: z.object({ outcome: z.enum(['imported', 'extended', 'ignored', 'replaced']) }),
  AmplifierCleared: z.object({ cleared: count.describe('Messages that the list had') }),
  AmplifierMessagesView: z.object({
    messages: z.array(message),
    tokens: count,
    counter: z.string().describe('Name of the token counter'),
    limit: count,
    all: count.describe('Messages of the whole list'),
    lines: count.describe('Results that this view shows as one line'),
    gone: count.describe('Messages that the view omits'),
    compaction: z
      .object({
        before_tokens: count,
        after_tokens: count,
        before_messages: count,
        after_messages: count,
        steps: z.array(z.string()).describe('Steps that shrank the view, in order'),
        lines: count,
        gone: count,
        cut: count,
        summary: z.string().nullable(),
      })
      .nullable()
      .describe('Null if this view begins with the whole previous view'),
  }),
} as const;

/** The parsed body of a request. */
export type RequestBody<N extends keyof typeof AMPLIFIER_REQUESTS> = z.output<(typeof AMPLIFIER_REQUESTS)[N]>;
/** The body of an answer, as sent. */
export type AnswerBody<N extends keyof typeof AMPLIFIER_ANSWERS> = z.input<(typeof AMPLIFIER_ANSWERS)[N]>;
