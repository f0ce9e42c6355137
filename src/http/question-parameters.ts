import * as z from 'zod';

/** The id of a session. */
export const sessionName = z.string().min(1).max(600).describe('Id of a session, or a unique prefix of it');
/** The name of an object. */
export const objectName = z.string().min(1).max(5_000).describe('Id of an object, a unique prefix of it, or a path');
/** A moment. */
export const at = z
  .string()
  .max(100)
  .optional()
  .describe('now, turn:7, turn:7.3, step:41, tx:123, or a time such as 2026-11-21T14:05Z');
/** A moment and its two clocks. */
export const clocks = {
  at,
  valid_time: z.string().max(100).optional().describe('Valid time; overrides that of `at`'),
  tx: z.string().max(100).optional().describe('Transaction time, as a transaction or a time; overrides that of `at`'),
};
/** The transaction in an address. An address with it always gives the same answer. */
export const pin = {
  tx: z.coerce
    .number()
    .int()
    .nonnegative()
    .optional()
    .describe('A transaction: the answer as it was known after it; default: the newest'),
};
/** The session that turn numbers refer to. */
export const inSession = sessionName
  .optional()
  .describe('The session to which turn numbers refer, and in which objects are searched');
/** Maximum number of listed things. */
export const limit = z.coerce.number().int().min(1).max(100_000).optional();

/** Returns a moment from its parameters. */
export const moment = ({ at, valid_time: validTime, tx }: z.output<z.ZodObject<typeof clocks>>) => ({
  at,
  validTime,
  tx,
});
