import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { defined } from '../../values/defined.js';
import { findCorpus } from '../replay/find-recordings.js';
import { parseReplayConfig } from '../replay/replay-config.js';
import { type NodeSettings, openReplayDatabase } from '../replay/replay-database.js';
import { replayInBatches } from '../report/replay-many.js';
import type { ReplayReport } from '../report/replay-report.js';
import { countDifferences, type ListedCounts, readProvenance } from './listed-counts.js';
import { corpusHash } from './run-experiment.js';

/** The result of replaying one recording of a corpus. */
export interface CorpusResult {
  readonly name: string;
  readonly listed: ListedCounts | undefined;
  readonly report: ReplayReport | undefined;
  /** Why there is no report. */
  readonly failure: string | undefined;
  readonly ms: number;
}

/** How the corpus was replayed. */
export interface CorpusRun {
  readonly command: string;
  readonly commit: string;
  readonly date: string;
  /** The machine and its load, for judging the seconds. */
  readonly machine: string;
}

function line(result: CorpusResult): string {
  const { name, listed, report, failure, ms } = result;
  if (report === undefined) return `| ${name} | | | | | | | | | | ${failure ?? 'not replayed'} |`;
  const { recorded, contexts, uses } = report;
  const against = (own: number, other: number | undefined): string =>
    other === undefined || other === own ? String(own) : `${own} (${other})`;
  const tokens = contexts.total.tokens;
  return `| ${[
    name,
    against(recorded.items, listed?.messages),
    against(recorded.calls, listed?.calls),
    against(recorded.read_files, listed?.reads),
    contexts.count,
    tokens?.p50 ?? '',
    tokens?.max ?? '',
    `${uses.edited.active}/${uses.edited.shown}/${uses.edited['one-step']}/${uses.edited.absent}`,
    `${recorded.changes.followed}/${recorded.changes.unknown}`,
    (ms / 1_000).toFixed(1),
    report.losses.total,
  ].join(' | ')} |`;
}

/** Counts the files that are no recordings by folder and reason. Their names are left out, since they may name people. */
function otherLines(others: readonly { readonly name: string; readonly reason: string }[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { name, reason } of others) {
    const folder = dirname(name);
    const what = `${folder === '.' ? 'beside the folders' : `${folder}/`}: ${reason}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return [...counts].map(([what, count]) => `- ${what}, ${count} ${count === 1 ? 'file' : 'files'}`);
}

/** The summary of a replayed corpus as Markdown. */
function corpusMarkdown(
  run: CorpusRun,
  results: readonly CorpusResult[],
  others: readonly { readonly name: string; readonly reason: string }[],
): string {
  const reports = results.flatMap(({ report }) => (report === undefined ? [] : [report]));
  const differing = results.flatMap((result) => {
    const said = result.report === undefined || result.listed === undefined ? [] : countDifferences(result.report, result.listed);
    return said.length === 0 ? [] : [`- ${result.name}: ${said.join('; ')}.`];
  });
  const sum = (of: (report: ReplayReport) => number): number => reports.reduce((all, report) => all + of(report), 0);
  return [
    `# Replay of a corpus, ${run.date}`,
    '',
    `Command: \`${run.command}\`  `,
    `Commit: \`${run.commit}\`  `,
    `Corpus: ${reports.length} recordings, ${sum(({ sessions }) => sessions.length)} sessions, sha256 \`${corpusHash(reports)}\` (over the sorted hashes of their contents)`,
    '',
    `${sum(({ steps }) => steps)} steps, ${sum(({ contexts }) => contexts.count)} contexts, ${sum(({ objects }) => objects.files.created)} files, ${sum(({ objects }) => objects.toolcalls.created)} tool calls, ${sum(({ losses }) => losses.total)} losses.`,
    '',
    'Counts beside those of the list that comes with the corpus, in brackets where they differ. Edited: files that the agent edited while active / shown by a',
    `result / one step away / absent. Changes: followed / to an unknown text. Seconds: several side by side, on ${run.machine}.`,
    '',
    '| recording | items | calls | reads | contexts | tokens p50 | max | edited | changes | seconds | losses |',
    '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
    ...results.map(line),
    '',
    '## Differences',
    '',
    ...(differing.length === 0 ? ['None.'] : differing),
    '',
    '## Not recordings',
    '',
    ...(others.length === 0 ? ['None.'] : otherLines(others)),
    '',
  ].join('\n');
}

/** The summary as data: each report without the single contexts, uses and losses, which name and quote what was recorded. */
function corpusJson(run: CorpusRun, results: readonly CorpusResult[]): unknown {
  return {
    ...run,
    recordings: results.map(({ name, listed, report, failure, ms }) => {
      if (report === undefined) return { name, failure, ms };
      const { each: _contexts, ...contexts } = report.contexts;
      const { each: _uses, ...uses } = report.uses;
      const { each: _losses, ...losses } = report.losses;
      return { name, listed, ms, report: { ...report, contexts, uses, losses } };
    }),
  };
}

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
 * Replays every recording below a folder and writes a summary of them as Markdown and JSON, named after the date. Returns the path of the Markdown file and the
 * number of recordings that could not be replayed.
 * @throws {ReplayError} bad-target – the corpus folder cannot be read
 * @throws {ReplayError} bad-config – the configuration is not valid
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
