import * as z from 'zod';
import { basis, contextKind, count, prefix, price, request, time, usage } from '../../review/http/review-parts.js';
import { REVIEW_ANSWERS } from '../../review/http/review-schemas.js';
import { PEOPLE_ANSWERS, sight } from './people-schemas.js';

const shownVersion = z.object({ number: count, valid_time: time, tx_id: count });

const columns = z
  .array(
    z.object({
      kind: contextKind,
      turn: count,
      step: count,
      at: time,
      delivered: z.string().nullable(),
      chars: count.nullable().describe('Of the handed-out context; null for the end of a turn, which has none'),
      sections: z.array(z.object({ name: z.string(), chars: count })),
      epoch: count.nullable(),
      usage: usage.nullable(),
    }),
  )
  .describe('Oldest first');
const bands = z.array(
  z.object({
    id: z.string(),
    type: z.enum(['file', 'toolcall']),
    name: z.string().describe('Its path, or the name of the call, such as "read src/cart.ts 1-200"'),
    tool: z.string().nullable().describe('Of a call'),
    failed: z.boolean(),
    chars: count.describe('Of its current text'),
    changes: z
      .array(z.object({ step: count, state: z.enum(['line', 'active', 'pinned', 'part', 'out']) }))
      .describe('From this step on'),
  }),
);
const marks = z.array(
  z.object({
    step: count,
    at: time,
    kind: z.enum(['epoch', 'verb', 'event', 'version']),
    number: count.nullable().describe('Of the epoch, or of the version'),
    reason: z.string().nullable(),
    price,
    tool: z.string().nullable(),
    event: z.string().nullable(),
    object: z.string().nullable(),
    by: z.enum(['person']).nullable().describe("The verb's caller; null for the agent"),
  }),
);

/**
 * Response bodies about the model calls of a session: each call's request, the changes between
 * requests, and the cost of a verb for later requests.
 */
export const PAGE_ANSWERS = {
  ...PEOPLE_ANSWERS,
  Strip: z.object({
    session: z.string(),
    basis,
    last_step: count,
    budget: count
      .nullable()
      .describe('Tokens at which an epoch ends, for a model with the usual window; null without epochs'),
    reasoning: count.describe('Texts of reasoning in the transcript, which are not imported'),
    calls: columns,
    bands,
    marks,
  }),
  StripChange: z
    .object({
      session: z.string(),
      basis,
      last_step: count,
      calls_from: count.describe('`calls` are the columns from this step on; earlier ones stay'),
      calls: columns,
      bands: bands.describe('Only the new changes'),
      marks,
    })
    .describe('Changes of a session since the transaction of the previous event'),
  Request: z.object({
    session: z.string(),
    tokenizer: z.string(),
    recorded: z
      .boolean()
      .describe('Whether the request itself was recorded. If not, the items come from other records'),
    why: z.string().nullable().describe('Why it was not recorded'),
    request: request.nullable().describe('null if it was not recorded, and no transcript has it'),
    basis,
    number: count.describe("Position among the session's requests, from 1"),
    total: count,
    previous: count.nullable().describe('The step of the previous request'),
    next: count.nullable(),
    redacted: z.literal(true).optional().describe('Text was masked before its import; the record covers the rest'),
    unequal: z
      .object({
        cause: z.string(),
        why: z.string(),
        section: z.string().nullable(),
        object: z.string().nullable(),
        line: count.nullable(),
      })
      .nullable()
      .describe('Why it differs from the handed-out context; null if it does not'),
    edits: z
      .array(z.object({ step: count, name: z.string(), sight }))
      .describe('The calls of its answer that changed files by their tools, or tried to, each with a file'),
    items: z.array(
      z.object({
        section: z.string().describe('untold: text that the provider counted and the transcript does not have'),
        form: z.enum(['line', 'text', 'message', 'plain']),
        name: z.string(),
        type: z.string().nullable(),
        object: z.string().nullable(),
        step: count.nullable(),
        version: shownVersion.nullable(),
        tokens: count,
        text: z.string(),
      }),
    ),
  }),
  Changes: z.object({
    session: z.string(),
    tokenizer: z.string(),
    recorded: z.boolean().describe('Whether both requests were recorded. If not, the changes come from other records'),
    why: z.string().nullable().describe('Why the request was not recorded'),
    sentence: z.string().describe('How much was written again, and why; as in /v1/money if the provider counted'),
    counted: z
      .object({
        read: count,
        fresh: count,
        again: count,
        fewer: count.describe('How many tokens fewer it has than the first, if no record shows which text left'),
      })
      .nullable()
      .describe("The provider's tokens of the second request: read from its cache, new, and written again"),
    prefix: prefix.nullable().describe('null if a request is not known'),
    compaction: z
      .object({
        step: count,
        turn: count,
        summary: z.string().nullable().describe("The harness's own text, whole"),
        reported: count.nullable().describe('Number of dropped entries, as the harness reported it'),
        dropped: z
          .array(z.object({ step: count, turn: count, name: z.string(), object: z.string().nullable(), chars: count }))
          .describe('The messages and calls that the summary replaces, oldest first'),
        files: count.describe('Number of files that those calls read or changed'),
        needed: z
          .array(z.object({ object: z.string(), name: z.string(), call: z.string(), step: count }))
          .describe('The files among them that a later call read or changed again, with the first such call'),
      })
      .nullable()
      .describe('The last compaction between the two requests'),
    stayed: count.describe('Items that are equal in both'),
    changes: z.array(
      z.object({
        key: z.string().describe('The id of an object, step:N of a message, or the name of a section'),
        object: z.string().nullable(),
        name: z.string(),
        kind: z.enum(['came', 'loaded', 'changed', 'moved', 'collapsed', 'left']),
        tokens_before: count,
        tokens_after: count,
        actor: z.enum(['agent', 'person', 'window', 'watcher', 'epoch', 'harness', 'rendering']),
        step: count.nullable(),
        why: z.string(),
      }),
    ),
  }),
  Redaction: REVIEW_ANSWERS.Search.extend({
    matches: count.describe('Number of texts that would be masked; `hits` lists the first 200'),
  }),
  VerbPrice: z
    .object({
      session: z.string(),
      object: z.string(),
      verb: z.string(),
      outcome: z.string().describe('done if it changes something'),
      tokenizer: z.string(),
      layout: z.enum(['ssot', 'epoch']),
      text: count.describe("Size of the object's text in a request"),
      written: z.int().describe('Additional tokens written once with the next request'),
      per_call: z.int().describe('Additional tokens of every request after that'),
      per_call_from_border: z.int().nullable().describe('From the next border on; null without epochs'),
      is_exact: z
        .boolean()
        .describe("Whether these are the exact bytes; otherwise items in a harness's own list are left out"),
    })
    .describe('In tokens'),
} as const;

/** An answer, as sent. */
export type PageBody<N extends keyof typeof PAGE_ANSWERS> = z.input<(typeof PAGE_ANSWERS)[N]>;
