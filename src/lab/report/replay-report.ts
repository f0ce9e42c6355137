import * as z from 'zod';
import { LOSS_REASONS } from '../recordings/importer.js';
import { RECORDING_FORMATS } from '../recordings/neutral-session.js';
import { contextMeasureSchema } from '../replay/context-measure.js';
import { replayConfigSchema } from '../replay/replay-config.js';
import { fileUseSchema, STANDINGS } from '../replay/use-evidence.js';

const count = z.int().nonnegative();
const counts = z.record(z.string(), count);
const standings = z.strictObject(
  Object.fromEntries(STANDINGS.map((name) => [name, count])) as Record<(typeof STANDINGS)[number], typeof count>,
);

const quantiles = z.strictObject({ p50: count, p95: count, max: count, sum: count });
const sizes = z.strictObject({ chars: quantiles, bytes: quantiles, tokens: quantiles.optional() });

const sessionReport = z.strictObject({
  session: z.string(),
  native_id: z.string(),
  relation: z.string().optional().describe('How it came from another session of the recording'),
  parent: z.string().optional().describe('The replayed session that it came from'),
  model: z.string().optional(),
  turns: count,
  steps: count,
  contexts: count,
});

/** The report of the replay of one recording [§6.2]. */
export const replayReportSchema = z.strictObject({
  report: z.literal('replay'),
  version: z.literal(1),
  recording: z.strictObject({
    name: z.string().describe('The name of the file without its folder'),
    sha256: z.string(),
    bytes: count,
    formats: z.array(z.enum(RECORDING_FORMATS)),
  }),
  config: replayConfigSchema,
  variant: z.string().describe('Name of the parameters; a part of the ids if not empty'),
  digest: z.string().describe('SHA-256 over every context, object version and final session: the same on any machine'),
  sessions: z.array(sessionReport),
  turns: count,
  steps: count,
  recorded: z.strictObject({
    messages: counts.describe('By role'),
    items: count.describe('Items of the transcript as its own format counts them'),
    read_files: count.describe('Files that calls read by any tool, as far as their arguments show'),
    main: z
      .strictObject({ items: count, calls: count, reads: count })
      .describe('The same of the first session alone, without its sub-agents'),
    shell_reads: count.describe('Those of `read_files` that were read by a command line'),
    attached_files: count.describe(
      'Files that came to the context without a call: attached to a prompt, or by the program',
    ),
    copied: count.describe('Entries taken over from a parent session'),
    calls: count,
    results: count,
    failed: count,
    unanswered: count,
    compactions: count,
    events: counts,
    tools: counts.describe('Calls by the recorded name of the tool'),
    kinds: counts.describe('Calls by the purpose of the tool'),
    reads: z
      .strictObject({ whole: count, part: count, by_shell: count })
      .describe('Files that calls showed, all of them or lines'),
    changes: z
      .strictObject({ followed: count, unknown: count })
      .describe('Changes of files whose text is known afterwards, and others'),
    usage: z
      .strictObject({ answers: count, input: count, output: count, cache_read: count, cache_write: count })
      .describe('As the provider counted'),
  }),
  objects: z.strictObject({
    files: z.strictObject({ created: count, updated: count, unchanged: count, stubs: count, deleted: count }),
    toolcalls: z.strictObject({ created: count }),
    not_discovered: count.describe('Files beyond the cap of a call'),
  }),
  tree: z
    .strictObject({ whole: count, partial: count, named: count, stale: count, deleted: count, forgotten: count })
    .describe('Files of the recording by the knowledge about them at its end'),
  clock: z.strictObject({ backwards: count, impossible: count, missing: count }),
  contexts: z.strictObject({
    count,
    tokenizer: z.string().optional(),
    total: sizes,
    sections: z.record(z.string(), sizes),
    each: z.array(contextMeasureSchema),
  }),
  uses: z.strictObject({ edited: standings, quoted: standings, each: z.array(fileUseSchema) }),
  losses: z.strictObject({
    total: count,
    by_reason: z.partialRecord(z.enum(LOSS_REASONS), count),
    each: z
      .array(z.strictObject({ reason: z.enum(LOSS_REASONS), place: z.string(), detail: z.string() }))
      .describe('The first thousand'),
  }),
  complete: z.boolean().describe('Whether all of the recording was read; the losses list missing parts'),
});

export type ReplayReport = z.infer<typeof replayReportSchema>;
export type Sizes = z.infer<typeof sizes>;
export type Quantiles = z.infer<typeof quantiles>;
