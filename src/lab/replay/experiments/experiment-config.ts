import { z } from 'zod';
import { replayConfigSchema } from '../replay-config.js';
import { ReplayError } from '../replay-error.js';

/** An experiment: sessions × parameters [§6]. */
export const experimentSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,60}$/)
    .describe('Part of the name of the result folder'),
  question: z.string().min(1).describe('What it is to find out'),
  sessions: z
    .array(z.string().min(1))
    .min(1)
    .describe('Recordings below the corpus folder: paths, or beginnings of paths such as `codex/`; `*` for all'),
  parameters: z
    .array(z.strictObject({ name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9=.-]{0,60}$/), config: replayConfigSchema }))
    .min(1)
    .describe('Ways to replay each of them'),
});

export type Experiment = z.output<typeof experimentSchema>;

/** Checks the description of an experiment. Throws ReplayError `bad-config` that names the value. */
export function parseExperiment(value: unknown, name: string): Experiment {
  const parsed = experimentSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ReplayError(
      'bad-config',
      `${name}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not valid'}; see docs/replay.md for what an experiment holds`,
    );
  }
  const names = parsed.data.parameters.map((one) => one.name);
  const twice = names.find((one, i) => names.indexOf(one) !== i);
  if (twice !== undefined)
    throw new ReplayError('bad-config', `${name}: parameters: two are named ${JSON.stringify(twice)}; name them apart`);
  return parsed.data;
}
