import * as z from 'zod';
import { ReplayError } from '../replay/replay-error.js';
import { policySchema } from './policy-table.js';

type PolicyInput = z.input<typeof policySchema>;

/** The published setting of each family of other programs' policies. */
const PUBLISHED = [
  { policy: 'last-results', keep: 10 },
  { policy: 'truncate-oldest', over: 100_000, keep: 50_000 },
  { policy: 'clear-tool-uses', over: 100_000, keep: 3 },
  { policy: 'context-editing' },
  { policy: 'opencode-prune' },
  { policy: 'server-compaction' },
  { policy: 'idle-compaction' },
  { policy: 'codex-notes' },
  { policy: 'openhands-condenser' },
  { policy: 'frozen-compaction' },
  { policy: 'transparent-compact' },
  { policy: 'linked-eviction' },
  { policy: 'dcp' },
] as const satisfies readonly PolicyInput[];

/** Further settings of the families in `PUBLISHED`. */
const VARIED = [
  { policy: 'last-results', keep: 10, step: 20 },
  { policy: 'last-results', keep: 5, step: 40 },
  { policy: 'last-results', keep: 20, step: 40 },
  { policy: 'last-results', keep: 40, step: 40 },
  { policy: 'truncate-oldest', over: 60_000, keep: 40_000 },
  { policy: 'truncate-oldest', over: 150_000, keep: 100_000 },
  { policy: 'clear-tool-uses', over: 50_000, keep: 3 },
  { policy: 'clear-tool-uses', over: 50_000, keep: 30 },
  { policy: 'context-editing', over: 50_000, keep: 20, least: 10_000 },
  { policy: 'context-editing', over: 100_000, keep: 40, least: 20_000 },
  { policy: 'opencode-prune', keep: 20_000, least: 10_000, turns: 1 },
  { policy: 'server-compaction', over: 100_000, keep: 20_000 },
  { policy: 'server-compaction', over: 100_000, keep: 60_000 },
  { policy: 'idle-compaction', minutes: 5, over: 50_000 },
  { policy: 'codex-notes', over: 100_000 },
  { policy: 'openhands-condenser', events: 120 },
  { policy: 'openhands-condenser', events: 480 },
  { policy: 'frozen-compaction', batch: 10_000, keep: 20 },
  { policy: 'frozen-compaction', batch: 20_000, keep: 40 },
  { policy: 'transparent-compact', over: 60_000, keep: 30 },
  { policy: 'transparent-compact', over: 100_000, keep: 40 },
  { policy: 'linked-eviction', over: 60_000, to: 40_000 },
  { policy: 'linked-eviction', over: 120_000, to: 90_000 },
  { policy: 'dcp', turns: 1 },
] as const satisfies readonly PolicyInput[];

/** Settings of our retention by use: lifetimes in calls, and a factor for the lifetime of edits. */
const RETENTIONS = [
  // The previous default. The current default also keeps the text that an edit wrote.
  { shown: 22, used: 11, inputs: false, edits: 0.4, mostShare: 0.2 },
  { shown: 14, used: 6, edits: 50 },
] as const;

const OURS = [{ policy: 'palimpsest', layout: 'epoch' }] as const satisfies readonly PolicyInput[];
const BOUNDS = [
  { policy: 'clairvoyant', where: 'at borders by rent' },
  { policy: 'clairvoyant' },
] as const satisfies readonly PolicyInput[];

const DEFAULT_POLICIES: readonly PolicyInput[] = [...PUBLISHED, ...OURS, ...BOUNDS];

/**
 * Every setting of every family. Settings of other programs' policies appear a second time, with
 * the two rules of our own policy (`Rights`).
 */
const SWEPT_POLICIES: readonly PolicyInput[] = [
  ...PUBLISHED,
  ...VARIED,
  ...[...PUBLISHED, ...VARIED].map((one) => ({ ...one, arguments: true, borders: true })),
  ...OURS,
  ...RETENTIONS.map((uses) => ({ policy: 'palimpsest' as const, layout: 'epoch' as const, uses })),
  { policy: 'palimpsest', layout: 'ssot', per: 'turn' },
  ...BOUNDS,
];

const parsed = (policies: readonly PolicyInput[]) => policies.map((one) => policySchema.parse(one));

/** The laboratory's configuration. All fields are optional. */
const labConfigSchema = z
  .strictObject({
    policies: z.array(policySchema).min(1).max(200).optional().describe('Compared with the two baselines'),
    sweep: z.boolean().default(false).describe('Without `policies`: many settings of every family'),
    least: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(30)
      .describe('Minimum number of model calls of a session; shorter sessions are left out'),
    window: z
      .int()
      .min(1_000)
      .max(10_000_000)
      .default(200_000)
      .describe("Tokens of the model's window: `raw` is a baseline only as long as it fits"),
  })
  .transform(({ policies, sweep, ...others }) => ({
    ...others,
    policies: policies ?? parsed(sweep ? SWEPT_POLICIES : DEFAULT_POLICIES),
  }));

export type LabConfig = z.output<typeof labConfigSchema>;

/** Validates a configuration; `{}` gives the default one. */
export function parseLabConfig(value: unknown, name: string): LabConfig {
  const result = labConfigSchema.safeParse(value);
  if (result.success) {
    const written = result.data.policies.map((one) => JSON.stringify(one));
    const twice = written.find((one, at) => written.indexOf(one) !== at);
    if (twice === undefined) return result.data;
    throw new ReplayError('bad-config', `${name}: policies: ${twice} is listed twice; remove one`);
  }
  const [issue] = result.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? 'the configuration' : issue.path.join('.');
  throw new ReplayError(
    'bad-config',
    `${name}: ${where}: ${issue?.message ?? 'not valid'}; ` +
      'a configuration may hold policies, sweep, least, window (docs/laboratory.md)',
  );
}
