import * as z from 'zod';

const count = z.int().nonnegative();
const moment = z
  .string()
  .min(1)
  .max(100)
  .optional()
  .describe('A moment such as turn:7 or step:41; default: the last step');

/** The name of a session that a request creates or opens. */
export const givenSessionName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}$/)
  .describe('Letters, digits and . _ : @ + -');

/** Request bodies of the server's own operations. */
export const REQUESTS = {
  Nothing: z.strictObject({}).describe('An empty object, or no body'),
  Fork: z.strictObject({
    at: moment,
    id: givenSessionName.optional().describe('The id of the new session; default: generated'),
  }),
} as const;

/** Response bodies of the server's own operations. */
export const ANSWERS = {
  Sessions: z.object({
    sessions: z.array(
      z.object({
        id: z.string(),
        title: z
          .string()
          .optional()
          .describe('Name of an imported session, or the first prompt. Only the review page of the data folder has it'),
        turns: count,
        steps: count,
        last_activity: z.string().describe('ISO 8601'),
        parent: z.object({ session: z.string(), at: count }).optional(),
        open_here: z.boolean(),
      }),
    ),
  }),
  Problem: z
    .object({
      type: z.string(),
      title: z.string(),
      status: z.int(),
      detail: z.string(),
      code: z.string().describe('Code that callers branch on'),
      errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
    })
    .describe('RFC 9457'),
  Forked: z.object({ id: z.string(), parent: z.object({ session: z.string(), at: count }) }),
} as const;

/** The parsed body of a request. */
export type RequestBody<N extends keyof typeof REQUESTS> = z.output<(typeof REQUESTS)[N]>;
/** The body of an answer, as sent. */
export type AnswerBody<N extends keyof typeof ANSWERS> = z.input<(typeof ANSWERS)[N]>;
