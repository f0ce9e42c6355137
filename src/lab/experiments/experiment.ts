import * as z from 'zod';
import { replayConfigSchema } from '../replay/replay-config.js';
import { ReplayError } from '../replay/replay-error.js';
import type { ReplayReport } from '../report/replay-report.js';

/** An experiment: recordings, each replayed with several sets of parameters [§6]. */
const experimentSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,60}$/)
    .describe('Part of the name of the result folder'),
  question: z.string().min(1).describe('The question that it answers'),
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

/**
 * Validates the description of an experiment. `name` is the name of its file in error messages.
 * @throws {ReplayError} bad-config – a value is invalid, or two sets of parameters have the same
 * name
 */
export function parseExperiment(value: unknown, name: string): Experiment {
  const parsed = experimentSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ReplayError(
      'bad-config',
      `${name}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not valid'}; ` +
        'docs/replay.md describes the fields of an experiment',
    );
  }
  const names = parsed.data.parameters.map((one) => one.name);
  const twice = names.find((one, i) => names.indexOf(one) !== i);
  if (twice !== undefined)
    throw new ReplayError('bad-config', `${name}: parameters: two have the name ${JSON.stringify(twice)}; rename one`);
  return parsed.data;
}

/**
 * Returns the figures that an experiment keeps of a replay report. They contain no recorded text,
 * path or author.
 */
export function experimentResult(report: ReplayReport) {
  const { recording, variant, digest, complete, sessions, turns, steps, recorded, contexts, objects, uses, losses } =
    report;
  const format = recording.formats.join('+');
  return {
    /** The format and the first digits of the recording's hash. */
    recording: `${format} ${recording.sha256.slice(0, 8)}`,
    format,
    parameters: variant,
    digest,
    complete,
    sessions: sessions.length,
    turns,
    steps,
    calls: recorded.calls,
    contexts: contexts.count,
    tokens: contexts.total.tokens,
    bytes: contexts.total.bytes,
    /** Tokens over all contexts; bytes if tokens were not counted. */
    sections: Object.fromEntries(
      Object.entries(contexts.sections).map(([name, { tokens, bytes }]) => [name, (tokens ?? bytes).sum]),
    ),
    objects,
    uses: { edited: uses.edited, quoted: uses.quoted },
    losses: losses.by_reason,
  };
}

export type ExperimentResult = ReturnType<typeof experimentResult>;
