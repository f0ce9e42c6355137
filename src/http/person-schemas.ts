import * as z from 'zod';
import { count, ids } from './review-parts.js';

const at = z
  .string()
  .min(1)
  .max(100)
  .optional()
  .describe('A moment such as turn:7 or step:41; the last step where absent');
const changes = z
  .object({ activate: ids.optional(), deactivate: ids.optional(), pin: ids.optional(), unpin: ids.optional() })
  .describe('What becomes of the sets');

/** The bodies of what a person, not an agent, asks for in a session. */
export const PERSON_REQUESTS = {
  PersonVerb: z.strictObject({
    verb: z.enum(['activate', 'deactivate', 'pin', 'unpin']),
    ids: z
      .array(z.string().min(1))
      .min(1)
      .max(200)
      .describe('Ids, unique prefixes of 8 or more characters, or display paths'),
  }),
  Undo: z.strictObject({
    step: z.int().min(1).describe('The step whose changes of the sets are taken back'),
    plan: z.boolean().optional().describe('Only tell what would be'),
  }),
  Fork: z.strictObject({
    at,
    id: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}$/)
      .optional()
      .describe('The id of the new session; a new one where absent'),
  }),
  FileCopies: z.strictObject({
    at,
    to: z
      .string()
      .min(1)
      .max(4_000)
      .describe('A folder that is not there yet, or an empty one, inside the folders of this server'),
  }),
} as const;

/** The bodies of the answers. */
export const PERSON_ANSWERS = {
  SetsChanged: z.object({
    session: z.string(),
    verb: z.string(),
    step: count.nullable().describe('The step that was recorded; null where nothing was changed'),
    entries: z.array(
      z.object({
        reference: z.string(),
        ok: z.boolean(),
        id: z.string().optional(),
        changes: z.boolean().optional().describe('Whether it was not so already'),
        failure: z.string().optional(),
        candidates: ids.optional(),
      }),
    ),
  }),
  StepUndone: z.object({
    session: z.string(),
    undoes: count,
    step: count.nullable().describe('The step that was recorded; null for a plan'),
    changes,
  }),
  Forked: z.object({ id: z.string(), parent: z.object({ session: z.string(), at: count }) }),
  FilesCopied: z.object({
    session: z.string(),
    turn: count,
    step: count,
    folder: z.string(),
    written: z.array(z.string()),
    not_kept: z.array(z.string()).describe('Of these only the hash was kept'),
  }),
} as const;
