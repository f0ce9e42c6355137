import * as z from 'zod';
import { SEARCHED_KINDS } from '../../history/search/kinds.js';
import {
  basis,
  comparedContexts,
  contextKind,
  count,
  digest,
  ids,
  loggedTurn,
  place,
  prefix,
  rebuiltFrom,
  seenVersion,
  time,
  times,
} from './review-parts.js';

/** A reviewer's note. */
export const noteAnswer = z.object({
  session: z.string(),
  turn: count,
  step: count,
  at: time,
  object: z.string().nullable().describe('null for the session at that step'),
  verdict: z.enum(['right', 'wrong', 'unclear']).nullable(),
  text: z.string().nullable(),
  by: z.string().nullable(),
});

const ranges = z.array(z.object({ from: count, to: count, calls: count }));

const version = z.object({
  number: count,
  type: z.string().nullable(),
  state: z.enum(['stub', 'text', 'not-text', 'deleted', 'removed']),
  ...times,
  chars: count,
  content_hash: digest,
  file_hash: digest,
  object_hash: digest,
});

const view = z.object({
  gone: z.boolean(),
  number: count,
  ...times,
  place,
  display: z.string().nullable().describe("A file's path as it is shown"),
});
const hunk = z.object({
  old_start: count,
  old_lines: count,
  new_start: count,
  new_lines: count,
  lines: z.array(z.string()),
});
const textDiff = z.object({
  equal: z.boolean(),
  added: count,
  removed: count,
  hunks: z.array(hunk).nullable().describe('null: too different to be compared line by line'),
});
const side = z.object({ basis, place, version: view.nullable() });
const setDiff = z.object({ added: ids, removed: ids });
const size = z.object({ chars: count, tokens: count });

const assembly = z.object({
  kind: contextKind,
  turn: count,
  step: count,
  basis: basis.nullable(),
  recorded: z.boolean().describe('Whether a record of it was kept when it was delivered'),
  delivered: z.string().nullable(),
  sha256: z.string(),
  total: size,
  sections: z.array(z.object({ name: z.string(), chars: count, tokens: count })),
});

/** Response bodies about the past. */
export const REVIEW_ANSWERS = {
  Log: z.object({
    basis,
    turns: z.array(loggedTurn).nullable().describe('Newest first'),
    versions: z.array(version).nullable().describe('Newest first'),
  }),
  Show: z.object({
    basis,
    object: z.record(z.string(), z.unknown()).describe('The document [§2.2] with its five hashes'),
    version: view,
    line: z
      .object({ session: z.string().nullable(), others: ids })
      .describe('The imported session whose versions these are, and others'),
    text: z.string().nullable(),
    whole: z.boolean().describe('False where only the head and the tail of the text were kept'),
  }),
  Diff: z.object({
    object: z.object({ id: z.string(), before: side, after: side, diff: textDiff }).nullable(),
    session: z
      .object({
        id: z.string(),
        from: z.object({ basis, place }),
        to: z.object({ basis, place }),
        sets: z.object({ index: setDiff, pool: setDiff, active: setDiff, pinned: setDiff }),
        active: z.array(
          z.object({
            id: z.string(),
            change: z.enum(['added', 'removed', 'changed']),
            chars_before: count,
            chars_after: count,
            diff: textDiff.nullable(),
          }),
        ),
      })
      .nullable(),
  }),
  PrefixDiff: z.object({
    session: z.string(),
    tokenizer: z.string(),
    compared: z.array(prefix).describe('Newest first'),
    is_cut: z.boolean().describe('Whether there are older ones'),
  }),
  PastContext: z.object({
    kind: contextKind,
    basis: basis.nullable(),
    session: z.string(),
    turn: count,
    step: count,
    source: z
      .enum(['record', 'assembled', 'transcript'])
      .describe(
        'record: the context of a record that was kept; transcript: what the transcript has of the request; ' +
          'assembled: made now from the sets of the session, and no model was sent it',
      ),
    renderer: z.enum(['text', 'messages', 'around', 'epoch', 'sent']),
    delivered: z.string().nullable(),
    sha256: z.string(),
    matches: z.boolean().nullable().describe('Whether it equals the record byte for byte; null without a record'),
    redacted: z
      .literal(true)
      .optional()
      .describe('Text was masked before the import; the record describes the masked text'),
    rebuilt_from: rebuiltFrom.optional(),
    text: z.string(),
  }),
  Notes: z.object({ said: z.array(noteAnswer) }),
  Who: z.object({
    basis,
    object: z.string(),
    sessions: z.array(
      z.object({
        session: z.string(),
        known_from: z.object({ turn: count, step: count, at: time }),
        touched: z.array(count),
        active: z.array(count).describe("Turns during which it was in the session's active set"),
        sent: z.array(count).describe('Turns in which the model was sent it in full, by the records of its requests'),
        transcript: z.array(count).describe('Turns in which it was sent in full, by a transcript'),
        unseen: z
          .array(count)
          .describe('Turns since it is known with calls of the model that were not seen by Palimpsest'),
        versions: z.array(seenVersion),
        is_active: z.boolean(),
        is_pinned: z.boolean(),
      }),
    ),
    damaged: z
      .array(z.object({ session: z.string(), why: z.string() }))
      .describe('Sessions that cannot be read. Whether they saw the object is unknown'),
  }),
  Query: z.object({
    basis,
    columns: z.array(z.string()),
    rows: z.array(z.array(z.unknown())),
    limit: count,
    is_cut: z.boolean().describe('Whether there were more rows than the limit'),
  }),
  Verify: z.object({
    session: z.string(),
    ok: z.boolean().describe('Nothing that was checked is wrong'),
    contexts: z.object({
      ...comparedContexts,
      by_delivery: z.record(z.string(), count),
      handed_lists: count.describe(
        'Lists that a harness mixed with its own messages; only the context in them was compared',
      ),
      unequal: z.array(
        z.object({
          session: z.string(),
          turn: count,
          step: count,
          at: time,
          delivered: z.string(),
          sha256: z.string(),
          cause: z.string(),
          why: z.string(),
          rebuilt: digest,
          section: z.string().nullable(),
          object: z.string().nullable(),
          line: count.nullable(),
        }),
      ),
    }),
    answers: z.object({
      read: z.boolean().describe('False where the steps cannot be read, so that no answer was compared'),
      total: count,
      equal: count,
      from_others: count.describe('Of the equal ones, those made with texts of other objects'),
      kept_only: count.describe('The hash is stored, but stored data cannot reproduce the answer'),
      unequal: z.array(
        z.object({
          turn: count,
          step: count,
          call: z.string(),
          sha256: z.string(),
          cause: z.string(),
          why: z.string(),
        }),
      ),
    }),
    parts: z.object({
      checked: count,
      damages: z.array(
        z.object({ part: z.string(), what: z.enum(['missing', 'damaged', 'rewritten', 'lost']), of: z.string() }),
      ),
    }),
  }),
  Search: z.object({
    session: z.string().nullable().describe('null: every session was searched'),
    basis,
    texts: count.describe('Texts that were compared'),
    chars: count.describe('Their length in UTF-16 units'),
    is_cut: z.boolean().describe('Whether more texts exist than were compared or listed'),
    is_indexed: z.boolean().describe('Whether an index proposed the texts to compare; otherwise all were compared'),
    hits: z
      .array(
        z.object({
          kind: z.enum(SEARCHED_KINDS),
          name: z.string().describe('Role, tool or path'),
          session: z.string(),
          object: z.string().nullable(),
          part: z.enum(['content', 'arguments']).nullable().describe('The part of a call that matched'),
          step: count.nullable(),
          turn: count.nullable(),
          at: time.describe('Beginning of its valid time'),
          tx_id: count.nullable().describe('The transaction that recorded it'),
          version: z.object({ number: count, valid_time: time, tx_id: count }).nullable(),
          count: count.describe('Number of matches'),
          lines: z
            .array(
              z.object({
                line: count,
                excerpt: z.string(),
                marks: z
                  .array(z.object({ at: count, end: count }))
                  .describe('The matches in the excerpt, UTF-16 units'),
                before: z.array(z.string()).nullable(),
                after: z.array(z.string()).nullable(),
              }),
            )
            .describe('The first matches, one per line'),
          whole: ranges.describe('The steps of calls whose context contained it whole'),
          in_part: ranges.describe("The steps of a transcript's calls whose context had a part of the file"),
          as_line: ranges.describe('The steps of calls whose context contained only a line of its object'),
          seen: z
            .array(
              z.object({
                session: z.string(),
                whole: ranges,
                in_part: ranges,
                as_line: ranges,
                falls: z
                  .array(z.object({ step: count, call: count, fewer: count }))
                  .describe('Calls at which the provider counted fewer tokens, though the transcript still has it'),
              }),
            )
            .describe('The same for each session that knows it, at most eight'),
        }),
      )
      .describe('In the asked order; default: newest first'),
  }),
  ReportList: z.object({
    session: z.string(),
    tokenizer: z.string(),
    assemblies: z.array(assembly),
    unseen: z.array(count).describe('Turns with calls of the model that were not seen by Palimpsest, newest first'),
  }),
  ReportDetail: z.object({
    session: z.string(),
    tokenizer: z.string(),
    assembly,
    objects: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        type: z.string(),
        active: z.boolean(),
        raw_chars: count.describe('Length of its whole text'),
        shown_chars: count.describe('Its size in the context: its line in the pool and its block'),
        shown_tokens: count,
        line: size,
        block: size.nullable(),
      }),
    ),
    raw_chars: count,
    shown_chars: count,
  }),
} as const;

/** An answer, as sent. */
export type ReviewAnswer<N extends keyof typeof REVIEW_ANSWERS> = z.input<(typeof REVIEW_ANSWERS)[N]>;
