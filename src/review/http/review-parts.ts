import * as z from 'zod';

/** A count. */
export const count = z.int().nonnegative();
/** Ids of objects. */
export const ids = z.array(z.string());
/** A time of either clock. */
export const time = z.string().describe('ISO 8601, UTC');
/** A hash, or null if there is none. */
export const digest = z.string().nullable();

/** The moment of an answer. */
export const basis = z
  .object({ valid_time: time.nullable(), tx_id: count.nullable(), tx_time: time.nullable() })
  .describe(
    'The moment of the answer: the state valid at that time, as known after the transaction. Without a ' +
      'valid time, the newest known versions',
  );
/** Both clocks of a version. */
export const times = {
  valid_time: time.describe('Beginning of its validity, as far as known'),
  tx_time: time.describe('When the database learned it'),
  tx_id: count,
};
/** A place in a session. */
export const place = z
  .object({ session: z.string(), turn: count, step: count.describe('From the beginning of the session') })
  .nullable();

/** Token usage of a model call. */
export const usage = z
  .object({
    input: count.optional(),
    output: count.optional(),
    cache_read: count.optional(),
    cache_write: count.optional(),
    cache_write_hour: count.optional().describe('The part of cache_write that lives for an hour'),
    cache_miss: z.object({ reason: z.string(), tokens: count.optional() }).optional(),
    thinking_dropped: count.describe('Blocks').optional(),
    model: z.string().optional().describe('The model that answered, if a recording names it'),
    cost: z.number().optional().describe('US dollars, as the agent recorded it'),
  })
  .describe("The provider's report on the model call, in tokens");
/** Costs and savings of an epoch. */
export const price = z
  .object({ written: count, saved_per_call: count })
  .describe('In tokens, as used for the decision')
  .nullable();
/** An epoch of contexts. */
const epoch = {
  number: count,
  reason: z.string().describe('first, saving, cold, pressure, asked, history'),
  price,
};

/** Number of rebuilt contexts, and the result of comparing each with its original. */
export const comparedContexts = {
  total: count,
  equal: count.describe('Rebuilt, byte for byte equal'),
  redacted: count.describe('Masked before their import: compared with the masked text'),
  inherited: count.describe('Of all, those of sessions that this one was forked from'),
};

/** How much is known about a model's request (decision E12). */
export const contextKind = z
  .enum(['sent', 'transcript', 'unseen'])
  .describe(
    "sent: its record has the sent bytes; transcript: an agent's own file records it; unseen: no model " +
      'was sent this',
  );

/**
 * The number of earlier requests that complete a request with only the new part of a conversation.
 */
export const rebuiltFrom = count.describe(
  'Number of earlier requests that the text is made of, with their answers; the request itself had only the new part',
);

/** One of two compared requests. */
export const request = z.object({
  turn: count,
  step: count,
  at: time,
  kind: contextKind,
  delivered: z.string(),
  layout: z.string(),
  sha256: z.string(),
  matches: z.boolean().describe('Whether the context was rebuilt byte for byte'),
  rebuilt_from: rebuiltFrom.optional(),
  bytes: count,
  tokens: count,
  epoch: count.nullable(),
  usage: usage.nullable(),
});

/** The common prefix of two requests. */
export const prefix = z.object({
  from: request,
  to: request,
  is_prefix: z.boolean().describe('Whether the second begins with the whole first'),
  shared: z.object({ bytes: count, tokens: count }).describe('The common beginning'),
  written: count.describe('Tokens of the second after it'),
  again: count.describe('Of these, tokens of lines that the first had too'),
  fewer: count.describe(
    'How many tokens fewer the provider counted than for the first, if no record shows which text left',
  ),
  difference: z
    .object({
      byte: count.describe('From the beginning of the request, in UTF-8'),
      byte_in_part: count,
      section: z.string().describe("system, pool, chat, active, notes, or list: the harness's own messages"),
      line: count.describe('Of the part, from 1'),
      object: z.string().nullable(),
      step: count.nullable(),
    })
    .nullable(),
  cause: z
    .object({
      kind: z.enum(['epoch', 'verb', 'call', 'message', 'version', 'harness', 'rendering']),
      why: z.string(),
      step: count.nullable(),
      object: z.string().nullable(),
      epoch: z.object(epoch).nullable(),
      version: z.object({ number: count, valid_time: time, tx_id: count }).nullable(),
    })
    .nullable(),
  answers: z
    .object({ kept: count, lost: count, left: count })
    .nullable()
    .describe(
      "The model's answers in the first request, by their reasoning. kept: still valid; lost: invalid, or removed " +
        'inside their turn; left: removed with a closed turn',
    ),
  cache: z
    .object({ read: count, expected: count, verdict: z.enum(['agrees', 'read-less', 'read-more']) })
    .nullable()
    .describe('Tokens that the provider read from its cache, and tokens that it could have read by our comparison'),
  miss: z
    .object({
      reason: z.string(),
      tokens: count.optional(),
      expected: z.string().nullable(),
      verdict: z.enum(['agrees', 'differs', 'unknown']),
    })
    .nullable()
    .describe(
      "The provider's reason why its cache did not have the whole previous request, and the reason that our " +
        'comparison of the requests gives',
    ),
  thinking: z
    .object({ dropped: count, lost: count, verdict: z.enum(['agrees', 'dropped-none', 'dropped-more']) })
    .nullable()
    .describe(
      'Thinking blocks that the provider left out of this request, but not of the previous one, and answers that ' +
        'lost theirs by our comparison',
    ),
});

/**
 * A version that a session had in full, also within a turn. Versions of one object are ordered by
 * first use.
 */
export const seenVersion = z.object({
  tx_id: count,
  valid_time: time,
  turns: z.array(count).describe('Turns during which it was active'),
  steps: z.array(z.object({ first: count, last: count })).describe('After which steps it was active, as runs'),
});

/** The text of a file that an agent had seen when it changed the file. */
export const sightFields = {
  sentence: z.string(),
  is_doubtful: z.boolean().describe('Whether it relied on a text that the agent had not seen, or that had changed'),
};

/** A turn in a log. */
export const loggedTurn = z.object({
  session: z.string(),
  turn: count,
  opened_by: z.string().nullable(),
  ref: z.string().nullable(),
  first_step: count,
  last_step: count,
  from: time,
  to: time.describe('Valid time of its last step'),
  tx_time: time.nullable(),
  tx_id: count.nullable(),
  messages: z.array(
    z.object({
      step: count,
      role: z.string(),
      text: z.string(),
      usage: usage.optional(),
    }),
  ),
  calls: z.array(
    z.object({
      step: count,
      id: z.string(),
      tool: z.string(),
      name: z.string().describe('Its tool and what it did, such as "read src/cart.ts 1-200"'),
      status: z.string(),
      args: z.string(),
      chars: count,
      file_refs: ids,
      notes: z.array(z.string()).describe('Its files that could not be recorded, and the reasons'),
      sights: z
        .array(z.object({ object: z.string(), ...sightFields }))
        .describe('For a failed edit: what its context had of each file'),
    }),
  ),
  epochs: z
    .array(z.object({ step: count.describe('The last one before its first model call'), at: time, ...epoch }))
    .describe('Epochs of contexts that began in this turn'),
  events: z
    .array(
      z.object({
        step: count,
        at: time,
        kind: z
          .string()
          .describe(
            "paused and resumed: turned off and on; bypassed: a call with the harness's own list; compacted, …",
          ),
        kept: count.nullable(),
        missing: count.nullable(),
        detail: z.string().nullable(),
      }),
    )
    .describe('Changes by the harness to its history, or to Palimpsest'),
  person: z
    .array(
      z.object({
        step: count,
        at: time,
        undoes: count.nullable().describe('The step whose changes it reverts'),
        changes: z.object({ activate: ids, deactivate: ids, pin: ids, unpin: ids }),
      }),
    )
    .describe('Changes of the sets by a person'),
  changes: z.object({ index: ids, activate: ids, deactivate: ids, pin: ids, unpin: ids }),
});
