import * as z from 'zod';
import { asSent } from '../policies/as-sent.js';
import { clairvoyant } from '../policies/clairvoyant.js';
import { clearToolUses } from '../policies/clear-tool-uses.js';
import { codexNotes } from '../policies/codex-notes.js';
import { contextEditing } from '../policies/context-editing.js';
import { dcp } from '../policies/dcp.js';
import { frozenCompaction } from '../policies/frozen-compaction.js';
import { idleCompaction } from '../policies/idle-compaction.js';
import { lastResults } from '../policies/last-results.js';
import { linkedEviction } from '../policies/linked-eviction.js';
import { loopPolicy, type OpenDatabase } from '../policies/loop-policy.js';
import type { Rights } from '../policies/masking.js';
import { opencodePrune } from '../policies/opencode-prune.js';
import { openhandsCondenser } from '../policies/openhands-condenser.js';
import type { ContextPolicy } from '../policies/policy.js';
import { raw } from '../policies/raw.js';
import { serverCompaction } from '../policies/server-compaction.js';
import { transparentCompact } from '../policies/transparent-compact.js';
import { truncateOldest } from '../policies/truncate-oldest.js';
import { PRICE_TABLES } from '../prices/price-table.js';

const tokens = z.int().min(1_000).max(10_000_000);
const count = z.int().min(1).max(10_000);
const lifetime = z.number().min(0).max(10_000);

const rights = {
  arguments: z.boolean().default(false).describe("Drops a call's arguments with its result"),
  borders: z.boolean().default(false).describe('Drops only where a message of the user begins a turn'),
};

/** The schema of a policy with its parameters. */
export const policySchema = z.discriminatedUnion('policy', [
  z.strictObject({
    policy: z.literal('last-results'),
    keep: count.describe('Newest results that stay whole'),
    step: count.default(1).describe('Results that are masked together'),
    ...rights,
  }),
  z.strictObject({ policy: z.literal('truncate-oldest'), over: tokens, keep: tokens, ...rights }),
  z.strictObject({ policy: z.literal('clear-tool-uses'), over: tokens, keep: count, ...rights }),
  z.strictObject({
    policy: z.literal('context-editing'),
    over: tokens.default(100_000),
    keep: count.default(3),
    least: z.int().min(0).default(0),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('opencode-prune'),
    keep: tokens.default(40_000),
    least: tokens.default(20_000),
    turns: count.default(2),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('server-compaction'),
    over: tokens.default(150_000),
    keep: z.int().min(0).default(0),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('idle-compaction'),
    minutes: count.default(54),
    over: tokens.default(200_000),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('codex-notes'),
    over: tokens.default(180_000),
    notes: count.default(6_000),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('openhands-condenser'),
    events: count.default(240),
    first: count.default(2),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('frozen-compaction'),
    batch: tokens.default(20_000),
    keep: count.default(5),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('transparent-compact'),
    over: tokens.default(100_000),
    keep: count.default(10),
    ...rights,
  }),
  z.strictObject({
    policy: z.literal('linked-eviction'),
    over: tokens.default(100_000),
    to: tokens.default(60_000),
    ...rights,
  }),
  z.strictObject({ policy: z.literal('dcp'), turns: count.default(4), ...rights }),
  z.strictObject({
    policy: z.literal('palimpsest'),
    layout: z.enum(['ssot', 'chat-first', 'pool-last', 'epoch']),
    per: z.enum(['call', 'turn']).default('call').describe('Made for every call, or only for the first call of a turn'),
    shortIds: z.boolean().default(false),
    retention: z.enum(['window', 'use']).optional().describe('`use` with layout `epoch`, else `window`'),
    uses: z
      .strictObject({
        shown: lifetime,
        used: lifetime,
        inputs: z.boolean().optional().describe('Whether what an edit wrote stays with its result'),
        edits: z.number().min(0).max(1_000).optional().describe('Factor of the lifetime of edits'),
        mostShare: z.number().min(0).max(1).optional().describe('Share of the request that texts may take'),
      })
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
type Makers = {
  readonly [K in Kind]: (config: Extract<PolicyConfig, { policy: K }>, open: OpenDatabase) => ContextPolicy;
};

/** Returns the settings of a policy, with its rights in the member `rights`. */
function settingsOf<T extends { readonly policy: Kind } & Rights>({ policy: _kind, ...config }: T) {
  return { ...config, rights: { arguments: config.arguments, borders: config.borders } };
}

/** Creates each policy from its parameters. */
const MAKERS: Makers = {
  'last-results': (config) => lastResults(settingsOf(config)),
  'truncate-oldest': (config) => truncateOldest(settingsOf(config)),
  'clear-tool-uses': (config) => clearToolUses(settingsOf(config)),
  'context-editing': (config) => contextEditing(settingsOf(config)),
  'opencode-prune': (config) => opencodePrune(settingsOf(config)),
  'server-compaction': (config) => serverCompaction(settingsOf(config)),
  'idle-compaction': (config) => idleCompaction(settingsOf(config)),
  'codex-notes': (config) => codexNotes(settingsOf(config)),
  'openhands-condenser': (config) => openhandsCondenser(settingsOf(config)),
  'frozen-compaction': (config) => frozenCompaction(settingsOf(config)),
  'transparent-compact': (config) => transparentCompact(settingsOf(config)),
  'linked-eviction': (config) => linkedEviction(settingsOf(config)),
  dcp: (config) => dcp(settingsOf(config)),
  palimpsest: ({ policy: _kind, ...settings }, open) => loopPolicy(settings, open),
  clairvoyant: ({ where }) => clairvoyant(PRICE_TABLES[0], where),
};

/**
 * Returns the baselines, followed by the policies of a configuration. Our own policies write to the
 * database that `open` returns.
 */
export function policiesOf(configs: readonly PolicyConfig[], open: OpenDatabase): readonly ContextPolicy[] {
  const make = (config: PolicyConfig): ContextPolicy =>
    (MAKERS[config.policy] as (one: PolicyConfig, open: OpenDatabase) => ContextPolicy)(config, open);
  return [raw, asSent, ...configs.map(make)];
}
