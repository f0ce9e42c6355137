import * as z from 'zod';
import { ReplayError } from './replay-error.js';

/** Settings of a replay. All fields are optional and have defaults. */
export const replayConfigSchema = z.strictObject({
  window: z
    .strictObject({
      perTurn: z.int().min(0).max(1_000).default(5).describe('Tool results of a turn that stay active'),
      turns: z
        .int()
        .min(1)
        .max(1_000)
        .default(3)
        .describe('Newest turns, the running one included, whose results stay active'),
    })
    .default({ perTurn: 5, turns: 3 })
    .describe('Auto-collapse [§4.3, decision D4]'),
  shortIds: z.boolean().default(false).describe('Contexts show the shortest unique prefixes of ids (decision D6)'),
  strict: z.boolean().default(false).describe('The literal behaviour of every divergence that has one (decision E8)'),
  tools: z
    .enum(['wrapped', 'recorded'])
    .default('wrapped')
    .describe('Whether calls have the names of their wrapped tools, or their recorded names'),
  tokens: z.boolean().default(true).describe('Whether the tokens of every context are counted'),
});

export type ReplayConfig = z.output<typeof replayConfigSchema>;

/**
 * Validates a configuration; `{}` gives the default one.
 *
 * @throws {ReplayError} `bad-config`, naming the invalid value
 */
export function parseReplayConfig(value: unknown, name: string): ReplayConfig {
  const parsed = replayConfigSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined || issue.path.length === 0 ? 'the configuration' : issue.path.join('.');
  throw new ReplayError(
    'bad-config',
    `${name}: ${where}: ${issue?.message ?? 'not valid'}; ` +
      'a configuration may hold window {perTurn, turns}, shortIds, strict, tools, tokens',
  );
}
