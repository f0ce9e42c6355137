import * as z from 'zod';
import { basis, contextKind, count, price, sightFields, time, usage } from '../../review/http/review-parts.js';
import { cost, sessionRow, spentTokens, withSubAgents } from '../../review/http/session-list.js';

const versionPlace = z.object({ number: count, valid_time: time, tx_id: count });

/** The author of a file version. */
const actor = z
  .object({
    kind: z.enum(['agent', 'person', 'git', 'editor', 'unknown']),
    session: z.string().nullable(),
    turn: count.nullable(),
    step: count.nullable(),
    call: z.string().nullable().describe('Id of the tool call that wrote it'),
    name: z.string().nullable().describe('Name of that call, such as "edit src/cart.ts"'),
    commit: z.string().nullable().describe('The commit whose file it is, for git'),
    why: z.string().describe('A sentence with the evidence'),
  })
  .describe('The author of a file version');

export const sight = z
  .object(sightFields)
  .nullable()
  .describe('For a changing call: the version or lines of the file in its context, and the replaced text');
const effect = z
  .enum(['read', 'changed', 'changed by a command', 'perhaps changed', 'tried to change', 'listed', 'put back'])
  .describe('tried to change: it failed, or nothing recorded shows a change; put back: to an earlier text');
const file = z.object({
  id: z.string(),
  name: z.string().describe('Its path as the agent saw it'),
  effect,
  lines: z
    .object({ from: count, to: count.nullable() })
    .nullable()
    .describe('The part that the call read or changed; null for all of it'),
  version: versionPlace.nullable(),
  sight,
});

const diffLines = z
  .array(
    z.object({
      old_start: count,
      old_lines: count,
      new_start: count,
      new_lines: count,
      lines: z.array(z.string()).describe('Each begins with a space, - or +'),
    }),
  )
  .describe('As hunks of a unified diff. The starts are 0 if the line numbers are not known');

const row = { step: count, turn: count, at: time };
const inherited = z.boolean().describe('Whether the session took it over from its parent');

const conversationRow = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('turn'), ...row, inherited, opened_by: z.string().nullable() }),
  z.object({
    kind: z.literal('message'),
    ...row,
    inherited,
    role: z
      .enum(['user', 'parent', 'assistant', 'system', 'harness'])
      .describe('parent: the agent that started a sub-agent; harness: texts that no person wrote'),
    text: z.string(),
    is_cut: z.boolean().describe('The whole text is in /v1/log'),
    call: count.nullable().describe('The number of the model call that answered so'),
    usage: usage.nullable(),
    is_uncounted: z.boolean().describe('Whether `usage.output` is too small for the answer: a placeholder'),
    cost: z.number().nullable().describe('US dollars'),
  }),
  z.object({
    kind: z.literal('call'),
    ...row,
    id: z.string(),
    number: count.describe("Position among the session's tool calls, from 1"),
    name: z.string().describe('Its tool and what it did, such as "read src/cart.ts 1-200"'),
    tool: z.string(),
    about: z.string().nullable().describe("The model's own words about a command of a shell"),
    failed: z.boolean(),
    unanswered: z.boolean().describe('Whether no result of it was recorded'),
    args: z.string(),
    result: z.string().describe('The beginning and the end of it'),
    result_chars: count,
    is_cut: z.boolean().describe('The whole result is in /v1/cat'),
    files: z.array(file),
    diff: diffLines.nullable().describe('The change that it made, as its arguments say'),
    notes: z.array(z.string()),
    call: count.nullable().describe('The number of the model call that made it'),
    sub_agent: z.string().nullable().describe('The session of the sub-agent that it started'),
    stale: z.boolean().describe('Whether it acted on an outdated copy: see /v1/stale'),
  }),
  z.object({
    kind: z.literal('epoch'),
    ...row,
    number: count,
    reason: z.string(),
    price,
    text: z.string().describe('A sentence'),
  }),
  z.object({
    kind: z.literal('event'),
    ...row,
    event: z.string().describe('compacted, shortened, diverged, forked, paused, resumed, bypassed, lost'),
    text: z.string().describe('A sentence'),
    summary: z.string().nullable().describe('Of a compaction, in full'),
    dropped: count.nullable().describe('Entries that the harness no longer sends'),
  }),
  z.object({
    kind: z.literal('person'),
    ...row,
    text: z.string(),
  }),
  z.object({
    kind: z.literal('change'),
    ...row,
    object: z.string(),
    name: z.string(),
    version: versionPlace,
    by: actor.describe('Never the agent of this session: its own changes are in its calls'),
  }),
]);

/** Response bodies for views that people read: lists, the conversation, money, and stale copies. */
export const PEOPLE_ANSWERS = {
  SessionList: z.object({
    basis,
    total: count.describe('All sessions that the filters admit'),
    counted: count.describe('Of these, those with figures; the others are being counted'),
    prices_as_of: z.string().describe('The day of the price list'),
    sessions: z.array(sessionRow),
  }),
  Conversation: z
    .object({
      session: z.string(),
      basis,
      title: z.string(),
      started_by: z
        .object({ session: z.string(), step: count.nullable(), name: z.string().nullable() })
        .nullable()
        .describe('The session that started it as a sub-agent, and the call that did; null for other sessions'),
      last_step: count,
      tool_calls: count.describe('In the whole session'),
      model_calls: count,
      rows: z.array(conversationRow).describe('Oldest first'),
      prompts: z
        .array(z.object({ step: count, turn: count, text: z.string().describe('Its first words') }))
        .describe('The prompts of the whole session, oldest first'),
      before: count.nullable().describe('The step to ask before for earlier rows; null at the beginning'),
      after: count.nullable().describe('The step to ask after for later rows; null at the end'),
    })
    .describe('A session as a conversation'),
  Money: z
    .object({
      session: z.string(),
      basis,
      prices_as_of: z.string(),
      prices: z
        .array(
          z.object({
            model: z.string(),
            calls: count,
            input: z.number().nullable(),
            cache_read: z.number().nullable(),
            cache_write: z.number().nullable(),
            cache_write_hour: z.number().optional().describe('If the session wrote to a cache of one hour'),
            output: z.number().nullable(),
          }),
        )
        .describe('US dollars for a million tokens; null for an unlisted model'),
      spent: cost,
      alone: cost.describe('The cost of the same calls with the whole history in every request'),
      alone_why: z.string().describe('How it was computed, or why it was not'),
      tokens: spentTokens.nullable(),
      with_sub_agents: withSubAgents,
      calls: count,
      uncounted: count.describe('Calls whose output is a placeholder in the transcript'),
      inherited: z
        .string()
        .nullable()
        .describe('A sentence about calls of the parent at the beginning, which cost there; null without such calls'),
      causes: z
        .array(
          z.object({
            cause: z.enum(['first-writes', 'lost-cache', 'rent', 'answers']),
            tokens: count,
            amount: z.number().nullable(),
          }),
        )
        .describe(
          'first-writes: new text; lost-cache: text written again; rent: text read from the cache; answers: output',
        ),
      costliest: z
        .array(
          z.object({
            step: count,
            turn: count,
            call: count,
            at: time,
            amount: z.number().nullable(),
            tokens: count.describe('Written again, or new'),
            cause: z.enum(['first-writes', 'lost-cache', 'rent', 'answers']),
            sentence: z.string(),
            object: z.string().nullable(),
          }),
        )
        .describe('At most five, the costliest first'),
      by_call: z
        .array(z.object({ step: count, amount: z.number().nullable(), written: count, read: count, again: count }))
        .describe('Oldest first; `again`: tokens of the previous request that the provider had to read anew'),
    })
    .describe('The cost of a session by cause'),
  Authors: z
    .object({
      session: z.string(),
      basis,
      object: z.string(),
      versions: z
        .array(
          z.object({
            ...versionPlace.shape,
            back: count.nullable().describe('The earlier version with the same text, if another came between'),
            by: actor,
          }),
        )
        .describe('Oldest first'),
      unrecorded: z
        .array(
          z.object({ ...row, is_sure: z.boolean().describe('Whether it changed the file for certain'), by: actor }),
        )
        .describe('Changes whose text was not recorded, by calls of the session or from outside, oldest first'),
      calls: z
        .array(
          z.object({
            ...row,
            name: z.string(),
            failed: z.boolean(),
            unanswered: z.boolean(),
            effect,
            sight,
            lines: z.object({ from: count, to: count.nullable() }).nullable().describe('Read lines; null for all'),
          }),
        )
        .describe('The calls of the session that named it'),
    })
    .describe('The versions of a file with their authors, and the calls that named it'),
  Stale: z
    .object({
      session: z.string(),
      basis,
      changed: z
        .array(z.object({ object: z.string(), calls: count }))
        .describe("Files that the session's own calls changed by their tools, with the number of those calls"),
      verdict: z.string().describe('A sentence on calls with stale copies; empty if `calls` says it'),
      outside: z
        .array(
          z.object({
            ...row,
            name: z.string().describe('The call that read the new text'),
            object: z.string(),
            file: z.string(),
            lines: z
              .object({ from: count, to: count })
              .nullable()
              .describe('Lines that two reads show differently; null if the whole text shows the change'),
            why: z.string().describe('A sentence'),
          }),
        )
        .describe('Changes that nothing recorded made. For calls on a copy from before, see `verdict`'),
      calls: z.array(
        z.object({
          ...row,
          id: z.string(),
          name: z.string(),
          failed: z.boolean(),
          object: z.string(),
          file: z.string(),
          seen: z.object({ ...versionPlace.shape, step: count }).describe('The version that the agent had last seen'),
          was: versionPlace.describe('The version on the disk'),
          by: actor.describe('Of the version on the disk'),
        }),
      ),
    })
    .describe('Tool calls that changed a file whose newest version the agent had not seen'),
  Compared: z
    .object({
      basis,
      shared: z
        .object({ steps: count, calls: count })
        .nullable()
        .describe('The common past of a fork and its parent; null for two sessions'),
      sides: z.array(
        z.object({
          row: sessionRow,
          outcome: z.string().nullable().describe('The last message of the model'),
          kind: contextKind,
          files: z.array(
            z.object({ id: z.string(), name: z.string(), chars: count, content_hash: z.string().nullable() }),
          ),
        }),
      ),
      files: z.array(
        z.object({
          name: z.string(),
          ids: z.array(z.string().nullable()),
          same: z.boolean().nullable().describe('Equal texts; null if one is not recorded whole'),
        }),
      ),
    })
    .describe('Two sessions: what they changed, what came out, and what it cost'),
} as const;
