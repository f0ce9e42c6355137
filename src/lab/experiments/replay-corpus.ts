import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { defined } from '../../values/defined.js';
import { type Corpus, findCorpus } from '../replay/find-recordings.js';
import { parseReplayConfig } from '../replay/replay-config.js';
import { table } from '../report/markdown.js';
import { type BatchOptions, type ReplayJob, type ReplayOutcome, replayInBatches } from '../report/replay-many.js';
import type { ReplayReport } from '../report/replay-report.js';
import { countDifferences, type ListedCounts, readProvenance } from './listed-counts.js';

/** Settings of a corpus replay, and facts about the run for its results. */
export interface CorpusRun extends Pick<BatchOptions, 'open' | 'jobs' | 'onProgress' | 'signal'> {
  /** The folder of the recordings. */
  readonly corpus: string;
  /** The folder for the results. */
  readonly out: string;
  /** The command line of the run, for the results. */
  readonly command: string;
  readonly commit: string;
  readonly date: string;
}

/** Returns the replay jobs of a corpus. Each finished replay is reported to `onProgress`. */
export function replayJobs(
  { open, jobs, onProgress, signal }: CorpusRun,
  all: readonly ReplayJob[],
  onReport?: (report: ReplayReport) => Promise<void>,
): Promise<readonly ReplayOutcome[]> {
  let done = 0;
  const onOutcome = async (outcome: ReplayOutcome): Promise<void> => {
    if ('report' in outcome) await onReport?.(outcome.report);
    done += 1;
    const { name, variant = '' } = outcome.job;
    onProgress?.(
      `${done}/${all.length} ${name} ${variant}: ${'report' in outcome ? `${outcome.ms} ms` : outcome.error.message}`,
    );
  };
  return replayInBatches(all, { open, jobs, onOutcome, ...defined({ onProgress, signal }) });
}

/** Returns the error message of a failed replay, without the path of the corpus. */
export const failureOf = ({ corpus }: CorpusRun, error: Error): string => error.message.replaceAll(corpus, 'CORPUS');

/** Returns a hash over the contents of a set of recordings. */
export function corpusHash(reports: readonly ReplayReport[]): string {
  const hashes = [...new Set(reports.map(({ recording }) => recording.sha256))].sort();
  return createHash('sha256').update(hashes.join('\n')).digest('hex');
}

/** The result of replaying one recording of a corpus. */
interface CorpusResult {
  readonly name: string;
  readonly listed: ListedCounts | undefined;
  readonly report: ReplayReport | undefined;
  readonly failure: string | undefined;
  readonly ms: number;
}

function cells({ name, listed, report, failure, ms }: CorpusResult): readonly string[] {
  if (report === undefined) return [name, ...Array<string>(9).fill(''), failure ?? 'not replayed'];
  const { recorded, contexts, uses } = report;
  const against = (own: number, other: number | undefined): string =>
    other === undefined || other === own ? String(own) : `${own} (${other})`;
  const tokens = contexts.total.tokens;
  return [
    name,
    against(recorded.items, listed?.messages),
    against(recorded.calls, listed?.calls),
    against(recorded.read_files, listed?.reads),
    String(contexts.count),
    String(tokens?.p50 ?? ''),
    String(tokens?.max ?? ''),
    `${uses.edited.active}/${uses.edited.shown}/${uses.edited['one-step']}/${uses.edited.absent}`,
    `${recorded.changes.followed}/${recorded.changes.unknown}`,
    (ms / 1_000).toFixed(1),
    String(report.losses.total),
  ];
}

/**
 * Counts the files that are not recordings, by folder and reason. Leaves out their names, which may
 * name people.
 */
function otherLines(others: Corpus['others']): readonly string[] {
  const counts = new Map<string, number>();
  for (const { name, reason } of others) {
    const folder = dirname(name);
    const what = `${folder === '.' ? 'beside the folders' : `${folder}/`}: ${reason}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return [...counts].map(([what, count]) => `- ${what}, ${count} ${count === 1 ? 'file' : 'files'}`);
}

/** Facts about a run for its summary. The measured seconds depend on machine and load. */
type RunFacts = Pick<CorpusRun, 'command' | 'commit' | 'date'> & { readonly machine: string };

/** Returns the summary of a corpus replay as Markdown. */
function corpusMarkdown(run: RunFacts, results: readonly CorpusResult[], others: Corpus['others']): string {
  const reports = results.flatMap(({ report }) => (report === undefined ? [] : [report]));
  const differing = results.flatMap((result) => {
    const said =
      result.report === undefined || result.listed === undefined ? [] : countDifferences(result.report, result.listed);
    return said.length === 0 ? [] : [`- ${result.name}: ${said.join('; ')}.`];
  });
  const sum = (of: (report: ReplayReport) => number): number => reports.reduce((all, report) => all + of(report), 0);
  return [
    `# Replay of a corpus, ${run.date}`,
    '',
    `Command: \`${run.command}\`  `,
    `Commit: \`${run.commit}\`  `,
    `Corpus: ${reports.length} recordings, ${sum(({ sessions }) => sessions.length)} sessions, sha256 ` +
      `\`${corpusHash(reports)}\` (over the sorted hashes of their contents)`,
    '',
    `${sum(({ steps }) => steps)} steps, ${sum(({ contexts }) => contexts.count)} contexts, ` +
      `${sum(({ objects }) => objects.files.created)} files, ` +
      `${sum(({ objects }) => objects.toolcalls.created)} tool calls, ${sum(({ losses }) => losses.total)} losses.`,
    '',
    "Counts in brackets are those of the corpus's own list, if they differ. Edited: files that the agent edited while",
    'active / shown by a result / one step away / absent. Changes: followed / to an unknown text. Seconds: several ' +
      `side by side, on ${run.machine}.`,
    '',
    ...table(
      [
        'recording',
        'items',
        'calls',
        'reads',
        'contexts',
        'tokens p50',
        'max',
        'edited',
        'changes',
        'seconds',
        'losses',
      ],
      results.map(cells),
    ),
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

/**
 * Returns the summary as data, without single contexts, uses and losses, which name or quote
 * recorded text.
 */
function corpusJson(run: RunFacts, results: readonly CorpusResult[]): unknown {
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

/**
 * Replays every recording below a folder and writes a dated summary as Markdown and JSON. Returns
 * the path of the Markdown file and the number of failed replays.
 * @throws {ReplayError} bad-target – the corpus folder cannot be read
 * @throws {ReplayError} bad-config – the configuration is not valid
 */
export async function replayCorpus(
  run: CorpusRun & { readonly machine: () => string },
  configuration: unknown,
): Promise<{ readonly path: string; readonly failed: number }> {
  const { corpus, out, command, commit, date } = run;
  const config = parseReplayConfig(configuration, 'the configuration');
  const { files, others } = await findCorpus(corpus);
  const listed = await readProvenance(corpus);
  const outcomes = await replayJobs(
    run,
    files.map((file) => ({ ...file, config })),
  );
  const results = outcomes.map((outcome): CorpusResult => {
    const { name = '' } = outcome.job;
    const report = 'report' in outcome ? outcome.report : undefined;
    const failure = 'error' in outcome ? failureOf(run, outcome.error) : undefined;
    return { name, listed: listed.get(name), report, failure, ms: outcome.ms };
  });
  const facts = { command, commit, date, machine: run.machine() };
  await mkdir(out, { recursive: true });
  const path = join(out, `${date}-replay-corpus`);
  await writeFileAtomic(`${path}.md`, corpusMarkdown(facts, results, others));
  await writeFileAtomic(`${path}.json`, `${JSON.stringify(corpusJson(facts, results), undefined, 1)}\n`);
  return { path: `${path}.md`, failed: results.filter(({ report }) => report === undefined).length };
}
