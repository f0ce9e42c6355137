import * as z from 'zod';
import { VERBS } from '../session/verb-outcome.js';
import { count, ids } from './review-parts.js';

const at = z.string().min(1).max(100).optional().describe('A moment such as turn:7 or step:41; default: the last step');
const changes = z
  .object({ activate: ids.optional(), deactivate: ids.optional(), pin: ids.optional(), unpin: ids.optional() })
  .describe('Changes of the sets');

/** Bodies of requests by a person, not an agent. */
export const PERSON_REQUESTS = {
  PersonVerb: z.strictObject({
    verb: z.enum(VERBS),
    ids: z
      .array(z.string().min(1))
      .min(1)
      .max(200)
      .describe('Ids, unique prefixes of 8 or more characters, or display paths'),
  }),
  Undo: z.strictObject({
    step: z.int().min(1).describe('The step whose changes to the sets are reverted'),
    plan: z.boolean().optional().describe('Only preview the changes'),
  }),
  Fork: z.strictObject({
    at,
    id: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,199}$/)
      .optional()
      .describe('The id of the new session; default: generated'),
  }),
  FileCopies: z.strictObject({
    at,
    to: z.string().min(1).max(4_000).describe('A new or empty folder inside the folders of this server'),
  }),
} as const;

/** Response bodies. */
export const PERSON_ANSWERS = {
  SetsChanged: z.object({
    session: z.string(),
    verb: z.string(),
    step: count.nullable().describe('The recorded step; null without changes'),
    entries: z.array(
      z.object({
        reference: z.string(),
        ok: z.boolean(),
        id: z.string().optional(),
        changes: z.boolean().optional().describe('Whether this changes its state'),
        failure: z.string().optional(),
        candidates: ids.optional(),
      }),
    ),
  }),
  StepUndone: z.object({
    session: z.string(),
    undoes: count,
    step: count.nullable().describe('The recorded step; null for a plan'),
    changes,
  }),
  Forked: z.object({ id: z.string(), parent: z.object({ session: z.string(), at: count }) }),
  FilesCopied: z.object({
    session: z.string(),
    turn: count,
    step: count,
    folder: z.string(),
    written: z.array(z.string()),
    not_kept: z.array(z.string()).describe('Files with only a stored hash'),
  }),
} as const;
