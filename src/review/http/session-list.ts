import * as z from 'zod';
import { type Shaped, wireShape } from '../../http/wire-shape.js';
import { defined } from '../../values/defined.js';
import { shownCost, shownTokens } from '../money/call-cost.js';
import { shownWithSubAgents } from '../money/sub-agent-cost.js';
import type { SessionRow } from '../rows/session-rows.js';
import { count, time } from './review-parts.js';

/** Tokens by how the provider counted them. */
export const spentTokens = z
  .object({ fresh: count, cache_read: count, cache_write: count, output: count, total: count })
  .describe('As the provider counted them. `fresh`: prompt tokens outside of the cache');

/** A cost with its source. */
export const cost = z
  .object({
    amount: z.number(),
    currency: z.literal('USD'),
    source: z
      .enum(['recorded', 'list', 'mixed'])
      .describe('recorded: the agent wrote it down; list: our price list of `prices_as_of`; mixed: both'),
    unpriced: count.describe('Calls without a known price, which the amount leaves out'),
  })
  .nullable();

/** The cost of a session with that of its sub-agents. */
export const withSubAgents = z
  .object({ sessions: count.describe('Number of sub-agents'), tokens: spentTokens.nullable(), cost })
  .nullable()
  .describe('With the sub-agents that it started, whose figures are their own; null without any');

/** A session in a list. */
export const sessionRow = z.object({
  id: z.string(),
  title: z.string().describe("The harness's title, or the first words of the user; may be empty"),
  agent: z.string().nullable().describe('Such as Claude Code; null if it is not known'),
  model: z.string().nullable().describe('The one with the most calls'),
  folder: z.string().nullable(),
  from: time.nullable(),
  to: time,
  turns: count,
  steps: count,
  parent: z
    .object({
      session: z.string(),
      at: count.nullable(),
      kind: z.enum(['fork', 'sub-agent']),
      call: z.string().nullable().describe("Id of the parent's call that started a sub-agent, if it is known"),
    })
    .nullable(),
  open: z.boolean().describe('Whether a process has it open'),
  figures: z
    .object({
      calls: count.describe('Answers of the model; without reported ones, tool calls'),
      tool_calls: count,
      tokens: spentTokens.nullable().describe('null if no provider counted them'),
      cost,
      files_changed: count,
      failures: count.describe('Tool calls whose result is a failure. A call without a result does not count'),
    })
    .nullable()
    .describe('null until they are counted: ask again'),
  with_sub_agents: withSubAgents,
  check: z
    .object({ findings: count, at: time })
    .nullable()
    .describe('The last palimpsest verify; null if it was not run, or the session has continued since then'),
});

/** Returns a session's row before its members get the names in which they are sent. */
export function shapedRow({
  owner,
  figures,
  check,
  withSubAgents: sum,
  ...row
}: SessionRow): Shaped<z.input<typeof sessionRow>> {
  const { model, from, spent, ...counts } = figures ?? {};
  return {
    ...row,
    open: owner !== undefined,
    ...defined({ withSubAgents: shownWithSubAgents(sum) }),
    check: check === undefined ? undefined : { findings: check.findings, at: new Date(check.checkedAt) },
    ...(model === undefined ? {} : { model }),
    ...(from === undefined ? {} : { from: new Date(from) }),
    figures:
      figures === undefined
        ? undefined
        : ({ ...counts, tokens: shownTokens(figures.spent), cost: shownCost(figures.spent) } as never),
  };
}

/** Returns a session's row as it is sent. */
export const sessionRowAnswer = (row: SessionRow): z.input<typeof sessionRow> => wireShape(sessionRow, shapedRow(row));
