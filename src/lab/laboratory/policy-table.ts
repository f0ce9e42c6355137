import * as z from 'zod';
import { clairvoyant } from '../policies/clairvoyant.js';
import { clearToolUses } from '../policies/clear-tool-uses.js';
import { lastResults } from '../policies/last-results.js';
import { loopPolicy, type OpenDatabase } from '../policies/loop-policy.js';
import { opencodePrune } from '../policies/opencode-prune.js';
import { ownCompaction } from '../policies/own-compaction.js';
import type { ContextPolicy } from '../policies/policy.js';
import { raw } from '../policies/raw.js';
import { truncateOldest } from '../policies/truncate-oldest.js';
import { PRICE_TABLES } from '../prices/price-table.js';

const tokens = z.int().min(1_000).max(10_000_000);

const lifetime = z.number().min(0).max(10_000);

/** A policy with its parameters. */
export const policySchema = z.discriminatedUnion('policy', [
  z.strictObject({ policy: z.literal('raw') }),
  z.strictObject({
    policy: z.literal('last-results'),
    keep: z.int().min(1).max(10_000).describe('Newest results that stay whole'),
    step: z.int().min(1).max(10_000).default(1).describe('Results that are masked together'),
  }),
  z.strictObject({ policy: z.literal('truncate-oldest'), over: tokens, keep: tokens }),
  z.strictObject({ policy: z.literal('clear-tool-uses'), over: tokens, keep: z.int().min(0).max(10_000) }),
  z.strictObject({ policy: z.literal('opencode-prune') }),
  z.strictObject({ policy: z.literal('own-compaction') }),
  z.strictObject({
    policy: z.literal('palimpsest'),
    layout: z.enum(['ssot', 'chat-first', 'pool-last', 'epoch']),
    per: z.enum(['call', 'turn']).default('call').describe('Made anew for every call, or for the first of a turn'),
    shortIds: z.boolean().default(false),
    retention: z.enum(['window', 'use']).optional().describe('`use` with layout `epoch`, else `window`'),
    uses: z
      .strictObject({ shown: lifetime, used: lifetime })
      .optional()
      .describe('Calls that texts stay after they were shown and used, with retention by use'),
    window: tokens.optional().describe("Tokens of the model's window, which the budget of an epoch follows"),
  }),
  z.strictObject({
    policy: z.literal('clairvoyant'),
    where: z.enum(['at borders', 'at borders by rent', 'anywhere']).default('at borders'),
  }),
]);
export type PolicyConfig = z.output<typeof policySchema>;

type Kind = PolicyConfig['policy'];
type Made = ContextPolicy | Promise<ContextPolicy>;
type Makers = { readonly [K in Kind]: (config: Extract<PolicyConfig, { policy: K }>, open: OpenDatabase) => Made };

/** Creates each policy from its parameters. */
const MAKERS: Makers = {
  raw: () => raw,
  'last-results': lastResults,
  'truncate-oldest': truncateOldest,
  'clear-tool-uses': clearToolUses,
  'opencode-prune': () => opencodePrune,
  'own-compaction': () => ownCompaction,
  palimpsest: ({ policy: _kind, ...settings }, open) => loopPolicy(settings, open),
  clairvoyant: ({ where }) => clairvoyant(PRICE_TABLES[0], where),
};

/**
 * Returns the policies of a configuration, preceded by `raw`. `open` returns the database of our
 * own policies.
 */
export async function policiesOf(
  configs: readonly PolicyConfig[],
  open: OpenDatabase,
): Promise<readonly ContextPolicy[]> {
  const others = configs.filter(({ policy }) => policy !== 'raw');
  const make = (config: PolicyConfig): Made =>
    (MAKERS[config.policy] as (one: PolicyConfig, open: OpenDatabase) => Made)(config, open);
  return [raw, ...(await Promise.all(others.map(make)))];
}
