import * as z from 'zod';
import { ReplayError } from '../replay/replay-error.js';
import { policySchema } from './policy-table.js';

const tokens = z.int().min(1_000).max(10_000_000);

const DEFAULT_POLICIES: readonly z.input<typeof policySchema>[] = [
  { policy: 'last-results', keep: 10 },
  { policy: 'last-results', keep: 10, step: 20 },
  { policy: 'truncate-oldest', over: 100_000, keep: 50_000 },
  { policy: 'clear-tool-uses', over: 100_000, keep: 3 },
  { policy: 'clear-tool-uses', over: 50_000, keep: 3 },
  { policy: 'opencode-prune' },
  { policy: 'own-compaction' },
  { policy: 'palimpsest', layout: 'ssot' },
  { policy: 'palimpsest', layout: 'ssot', per: 'turn' },
  { policy: 'palimpsest', layout: 'pool-last' },
  { policy: 'palimpsest', layout: 'epoch' },
  { policy: 'palimpsest', layout: 'epoch', uses: { shown: 14, used: 6 } },
  { policy: 'palimpsest', layout: 'epoch', uses: { shown: 56, used: 24 } },
  { policy: 'palimpsest', layout: 'epoch', uses: { shown: 240, used: 120 }, window: 1_000_000 },
  { policy: 'clairvoyant', where: 'at borders by rent' },
  { policy: 'clairvoyant' },
  { policy: 'clairvoyant', where: 'anywhere' },
];

/** The laboratory's configuration. All fields are optional. */
const labConfigSchema = z.strictObject({
  policies: z
    .array(policySchema)
    .min(1)
    .max(100)
    .default(() => DEFAULT_POLICIES.map((one) => policySchema.parse(one)))
    .describe('Compared with `raw`, which is always there'),
  least: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(30)
    .describe('Model calls that a session has at least; shorter ones are left out'),
  window: tokens.default(200_000).describe("Tokens of the model's window: larger requests are counted"),
});

export type LabConfig = z.output<typeof labConfigSchema>;

/**
 * Validates a configuration; `{}` is the default one.
 * @throws {ReplayError} `bad-config`, naming the invalid value
 */
export function parseLabConfig(value: unknown, name: string): LabConfig {
  const parsed = labConfigSchema.safeParse(value);
  if (parsed.success) {
    const written = parsed.data.policies.map((one) => JSON.stringify(one));
    const twice = written.find((one, at) => written.indexOf(one) !== at);
    if (twice === undefined) return parsed.data;
    throw new ReplayError('bad-config', `${name}: policies: ${twice} stands there twice; leave one out`);
  }
  const [issue] = parsed.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? 'the configuration' : issue.path.join('.');
  throw new ReplayError(
    'bad-config',
    `${name}: ${where}: ${issue?.message ?? 'not valid'}; ` +
      'a configuration may hold policies, least, window (docs/laboratory.md)',
  );
}
