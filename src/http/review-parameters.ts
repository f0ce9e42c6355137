import * as z from 'zod';
import { VERBS } from '../session/verb-outcome.js';

const sessionName = z.string().min(1).max(600).describe('Id of a session, or a unique prefix of it');
const objectName = z.string().min(1).max(5_000).describe('Id of an object, a unique prefix of it, or a path');
const at = z
  .string()
  .max(100)
  .optional()
  .describe('now, turn:7, turn:7.3, step:41, tx:123, or a time such as 2026-11-21T14:05Z');
const clocks = {
  at,
  valid_time: z.string().max(100).optional().describe('Valid time; overrides that of `at`'),
  tx: z.string().max(100).optional().describe('Transaction time, as a transaction or a time; overrides that of `at`'),
};
const inSession = sessionName.optional().describe('The session for turn numbers and for the search of objects');
const limit = z.coerce.number().int().min(1).max(100_000).optional();
const range = z.string().max(250).optional().describe('A..B, each as `at`; a bare number is a turn');
const assemble = z
  .enum(['true', 'false'])
  .optional()
  .describe('Whether to assemble the session as of that moment now, although no model received this');
// Each context is made again and counted.
const report = z.strictObject({
  session: sessionName,
  limit: z.coerce.number().int().min(1).max(200).optional(),
  assemble,
  ...clocks,
});

/** The parameters of questions about the past, in the query of their address. */
export const REVIEW_PARAMETERS = {
  log: z.strictObject({ session: sessionName.optional(), object: objectName.optional(), limit, ...clocks }),
  show: z.strictObject({ object: objectName, session: inSession, ...clocks }),
  cat: z.strictObject({ object: objectName, session: inSession, ...clocks }),
  diff: z.strictObject({
    object: objectName.optional(),
    session: sessionName.optional(),
    range,
    context: z.coerce.number().int().min(0).max(1_000).optional(),
  }),
  // Both requests of each comparison are made again and counted.
  diffPrefix: z.strictObject({
    session: sessionName,
    range: z
      .string()
      .max(250)
      .optional()
      .describe('A..B, each as `at`: these two; where absent each request and the one before it'),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(200)
      .optional()
      .describe('Maximum number of comparisons, newest first; default 20'),
  }),
  pastContext: z.strictObject({ session: sessionName, assemble, ...clocks }),
  bundle: z.strictObject({
    id: sessionName.describe('The session, perhaps with @MOMENT'),
    with_redacted: z
      .enum(['true', 'false'])
      .optional()
      .describe('Also write a session with redaction rules, without masking its text'),
  }),
  notes: z.strictObject({ session: sessionName, object: objectName.optional(), ...clocks }),
  strip: z.strictObject({ session: sessionName, ...clocks }),
  request: z.strictObject({ session: sessionName, at }),
  changes: z.strictObject({
    session: sessionName,
    range: z
      .string()
      .max(250)
      .optional()
      .describe('A..B, each as `at`; ..B: B and the request before it; where absent the newest and the one before it'),
  }),
  search: z.strictObject({
    session: sessionName,
    text: z.string().min(1).max(1_000).describe('Case-insensitive, unless it contains a capital'),
    ...clocks,
    limit: z.coerce.number().int().min(1).max(1_000).optional().describe('Maximum number of texts; default 100'),
  }),
  who: z.strictObject({ object: objectName, session: inSession }),
  verbPrice: z.strictObject({
    session: sessionName,
    object: objectName,
    verb: z.enum(VERBS),
  }),
  restorePlan: z.strictObject({ session: sessionName, at }),
  query: z.strictObject({
    query: z.string().min(1).max(20_000).describe('Datalog as EDN'),
    args: z.string().max(20_000).optional().describe('EDN vector with one value for each binding of :in'),
    session: inSession,
    ...clocks,
    limit,
    timeout: z.coerce.number().positive().max(30).optional().describe('Seconds; 10 where absent'),
    storage: z
      .enum(['true', 'false'])
      .optional()
      .describe("Whether the documents that the database holds are asked instead of the SSOT's"),
  }),
  verify: z.strictObject({
    session: sessionName,
    timeout: z.coerce.number().positive().max(600).optional().describe('Seconds; 60 where absent'),
  }),
  reportList: report,
  reportDetail: report,
} as const;

/** The parameters of following a session. */
export const EVENTS_PARAMETERS = z.strictObject({
  after: z.coerce
    .number()
    .int()
    .nonnegative()
    .optional()
    .describe('A transaction: changes after it are sent first; default: only new changes'),
});

/** The name of a question's parameters. */
export type ReviewVerb = keyof typeof REVIEW_PARAMETERS;
/** The parsed parameters of a question. */
export type ReviewParameters<V extends ReviewVerb> = z.output<(typeof REVIEW_PARAMETERS)[V]>;
