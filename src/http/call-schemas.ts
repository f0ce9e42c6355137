import * as z from 'zod';
import { basis, contextKind, count, prefix, price, request, time, usage } from './review-parts.js';

const shownVersion = z.object({ number: count, valid_time: time, tx_id: count });
const ranges = z.array(z.object({ from: count, to: count, calls: count }));

const columns = z
  .array(
    z.object({
      kind: contextKind,
      turn: count,
      step: count,
      at: time,
      delivered: z.string().nullable(),
      sha256: z.string().nullable(),
      chars: count
        .nullable()
        .describe('As it was handed out; null where it is the end of a turn, because no context was'),
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
    name: z.string(),
    chars: count.describe('Of its text as it is now'),
    changes: z
      .array(z.object({ step: count, state: z.enum(['line', 'active', 'pinned']) }))
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
    by: z.enum(['person']).nullable().describe('Whose verb it was; null for the agent'),
  }),
);

/** The bodies of answers about the calls of a session: what each was sent, and what changed from one to the next. */
export const CALL_ANSWERS = {
  Strip: z.object({
    session: z.string(),
    basis,
    last_step: count,
    calls: columns,
    bands,
    marks,
  }),
  StripChange: z
    .object({
      session: z.string(),
      basis,
      last_step: count,
      calls_from: count.describe('The columns from this step on are `calls`; those before it stay'),
      calls: columns,
      bands: bands.describe('What is new of them: the changes that came alone'),
      marks,
    })
    .describe('What became of a session since the transaction of the event before'),
  Request: z.object({
    session: z.string(),
    tokenizer: z.string(),
    request,
    basis,
    number: count.describe('Which of the requests of the session it is, from 1'),
    total: count,
    previous: count.nullable().describe('The step of the request before it'),
    next: count.nullable(),
    redacted: z
      .literal(true)
      .optional()
      .describe('Something was masked before it came into this database: the record is of what was left'),
    unequal: z
      .object({
        cause: z.string(),
        why: z.string(),
        section: z.string().nullable(),
        object: z.string().nullable(),
        line: count.nullable(),
      })
      .nullable()
      .describe('Why it is not, byte for byte, what was handed out; null where it is'),
    items: z.array(
      z.object({
        section: z.string(),
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
    prefix,
    stayed: count.describe('Things that stand in both as they were'),
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
  Search: z.object({
    session: z.string(),
    basis,
    texts: count,
    chars: count.describe('What was looked through'),
    is_cut: z.boolean().describe('Whether there is more than was looked through or listed'),
    hits: z.array(
      z.object({
        kind: z.enum(['message', 'toolcall', 'file']),
        name: z.string(),
        object: z.string().nullable(),
        step: count.nullable(),
        turn: count.nullable(),
        version: shownVersion.nullable(),
        count,
        lines: z.array(z.object({ line: count, excerpt: z.string() })).describe('The first places, each once a line'),
        whole: ranges.describe('The calls in whose context it stood whole, by their steps'),
        as_line: ranges.describe('The calls in whose context its object was a line alone'),
      }),
    ),
  }),
} as const;
