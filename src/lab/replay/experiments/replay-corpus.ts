import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { defined } from '../../../values/defined.js';
import { replayInBatches } from '../replay-batches.js';
import { parseReplayConfig } from '../replay-config.js';
import { type NodeSettings, openReplayDatabase } from '../replay-database.js';
import { findCorpus, readProvenance } from './corpus.js';
import { type CorpusResult, type CorpusRun, corpusJson, corpusMarkdown } from './corpus-summary.js';

/** Where and how a corpus is replayed. */
export interface CorpusOptions extends Omit<CorpusRun, 'machine'> {
  readonly machine: () => string;
  readonly corpus: string;
  readonly config: unknown;
  /** Folder for the summary. */
  readonly out: string;
  readonly jobs: number;
  readonly node: NodeSettings;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Replays every recording below a folder and writes a summary over them, Markdown and JSON, named after the date. Answers its path and how many recordings
 * could not be replayed. Throws ReplayError.
 */
export async function replayCorpus(options: CorpusOptions): Promise<{ readonly path: string; readonly failed: number }> {
  const { corpus, onProgress, jobs, out, signal } = options;
  const config = parseReplayConfig(options.config, 'the configuration');
  const { files, others } = await findCorpus(corpus);
  const listed = await readProvenance(corpus);
  const names = new Map(files.map(({ path, name }) => [path, name]));
  const work = files.map(({ path }) => ({ path, config }));
  const outcomes = await replayInBatches(work, {
    open: () => openReplayDatabase(undefined, options.node),
    jobs,
    ...defined({ onProgress, signal }),
    onOutcome: (outcome) =>
      onProgress?.(`${names.get(outcome.job.path)}: ${'report' in outcome ? `${outcome.ms} ms` : outcome.error.message}`),
  });
  const results = outcomes.map((outcome): CorpusResult => {
    const name = names.get(outcome.job.path) ?? '';
    const report = 'report' in outcome ? outcome.report : undefined;
    const failure = 'error' in outcome ? outcome.error.message.replaceAll(corpus, 'CORPUS') : undefined;
    return { name, listed: listed.get(name), report, failure, ms: outcome.ms };
  });
  const run = { command: options.command, commit: options.commit, date: options.date, machine: options.machine() };
  await mkdir(out, { recursive: true });
  const path = join(out, `${run.date}-replay-corpus`);
  await writeFileAtomic(`${path}.md`, corpusMarkdown(run, results, others));
  await writeFileAtomic(`${path}.json`, `${JSON.stringify(corpusJson(run, results), undefined, 1)}\n`);
  return { path: `${path}.md`, failed: results.filter(({ report }) => report === undefined).length };
}
