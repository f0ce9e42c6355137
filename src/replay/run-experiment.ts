import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { type CorpusFile, findCorpus } from './corpus.js';
import type { Experiment } from './experiment-config.js';
import type { ReplayDatabase } from './replay-database.js';
import { ReplayError } from './replay-error.js';
import { type ReplayOutcome, replayMany, writeReports } from './replay-many.js';
import type { ReplayReport } from './replay-report.js';

/** Where and with what an experiment runs. */
export interface ExperimentRun {
  readonly experiment: Experiment;
  /** Folder of the recordings. */
  readonly corpus: string;
  /** Folder that gets the result folder. */
  readonly out: string;
  readonly database: ReplayDatabase;
  readonly jobs: number;
  /** What is written down of how it was run. */
  readonly command: string;
  readonly commit: string;
  readonly date: string;
  readonly onProgress?: (line: string) => void;
}

/** One replay of an experiment, in figures. */
export interface ExperimentResult {
  readonly recording: string;
  readonly parameters: string;
  readonly digest: string;
  readonly contexts: number;
  readonly tokens: ReplayReport['contexts']['total']['tokens'];
  readonly bytes: ReplayReport['contexts']['total']['bytes'];
  readonly uses: { readonly edited: ReplayReport['uses']['edited']; readonly quoted: ReplayReport['uses']['quoted'] };
}

function chosen(all: readonly CorpusFile[], wanted: readonly string[]): readonly CorpusFile[] {
  const files = all.filter(({ name }) => wanted.some((one) => one === '*' || name === one || name.startsWith(one)));
  const unmet = wanted.find((one) => one !== '*' && !all.some(({ name }) => name === one || name.startsWith(one)));
  if (unmet !== undefined)
    throw new ReplayError(
      'bad-config',
      `sessions: the corpus has no recording ${JSON.stringify(unmet)}; its names are those below PALIMPSEST_CORPUS`,
    );
  return files;
}

const short = ({ recording }: ReplayReport): string => `${recording.formats.join('+')} ${recording.sha256.slice(0, 8)}`;

function resultOf(name: string, report: ReplayReport): ExperimentResult {
  const { digest, contexts, uses } = report;
  return {
    recording: short(report),
    parameters: name,
    digest,
    contexts: contexts.count,
    tokens: contexts.total.tokens,
    bytes: contexts.total.bytes,
    uses: { edited: uses.edited, quoted: uses.quoted },
  };
}

function markdown(run: ExperimentRun, corpusHash: string, results: readonly ExperimentResult[], failures: readonly string[]): string {
  const rows = results.map(({ recording, parameters, contexts, tokens, bytes, uses: { edited } }) => {
    const size = tokens ?? bytes;
    return `| ${recording} | ${parameters} | ${contexts} | ${size.p50} | ${size.p95} | ${size.max} | ${size.sum} | ${edited.active} | ${edited.shown} | ${edited['one-step']} | ${edited.absent} |`;
  });
  const unit = results.some(({ tokens }) => tokens !== undefined) ? 'tokens' : 'bytes';
  return [
    `# Experiment ${run.experiment.name}, ${run.date}`,
    '',
    run.experiment.question,
    '',
    `Command: \`${run.command}\`  `,
    `Commit: \`${run.commit}\`  `,
    `Corpus: ${new Set(results.map(({ recording }) => recording)).size} recordings, sha256 \`${corpusHash}\` (over the sorted hashes of their contents)`,
    '',
    ...run.experiment.parameters.map(({ name, config }) => `- ${name}: \`${JSON.stringify(config)}\``),
    '',
    `| recording | parameters | contexts | ${unit} p50 | p95 | max | sum | edited: active | shown | one step | absent |`,
    '|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
    ...rows,
    ...(failures.length === 0 ? [] : ['', '## Not replayed', '', ...failures.map((line) => `- ${line}`)]),
    '',
  ].join('\n');
}

/** The hash of a set of recordings, by their contents alone. */
export function corpusHash(reports: readonly ReplayReport[]): string {
  const hashes = [...new Set(reports.map(({ recording }) => recording.sha256))].sort();
  return createHash('sha256').update(hashes.join('\n')).digest('hex');
}

/**
 * Runs an experiment: every chosen recording in every way, and writes one result folder `DATE-NAME` with the command, the commit, the corpus by its hash, the
 * figures and the report of every replay. Answers the folder and what failed. Throws ReplayError, and what opening the corpus throws.
 */
export async function runExperiment(run: ExperimentRun): Promise<{ readonly folder: string; readonly failed: number }> {
  const { experiment, database, jobs, onProgress } = run;
  const files = chosen((await findCorpus(run.corpus)).files, experiment.sessions);
  const names = new Map<string, string>();
  const all = files.flatMap(({ path, name }) =>
    experiment.parameters.map((parameters) => {
      names.set(`${path}\n${parameters.name}`, name);
      return { path, config: parameters.config, variant: parameters.name };
    }),
  );
  const folder = join(run.out, `${run.date}-${experiment.name}`);
  await mkdir(folder, { recursive: true });
  const outcomes = await replayMany(all, {
    database,
    jobs,
    ...(onProgress === undefined ? {} : { onProgress }),
    onOutcome: async (outcome: ReplayOutcome) => {
      if ('report' in outcome) await writeReports(join(folder, 'replays'), outcome.report);
      onProgress?.(
        `${names.get(`${outcome.job.path}\n${outcome.job.variant}`)} ${outcome.job.variant}: ${'report' in outcome ? `${outcome.ms} ms` : outcome.error.message}`,
      );
    },
  });
  const reports = outcomes.flatMap((outcome) => ('report' in outcome ? [outcome.report] : []));
  const failures = outcomes.flatMap((outcome) =>
    'error' in outcome ? [`${outcome.job.variant}: ${outcome.error.message.replaceAll(run.corpus, 'CORPUS')}`] : [],
  );
  const results = reports.map((report) => resultOf(report.variant, report));
  const hash = corpusHash(reports);
  const { command, commit, date } = run;
  await writeFileAtomic(
    join(folder, 'experiment.json'),
    `${JSON.stringify({ experiment, command, commit, date, corpus: hash, results, failures }, undefined, 1)}\n`,
  );
  await writeFileAtomic(join(folder, 'README.md'), markdown(run, hash, results, failures));
  return { folder, failed: failures.length };
}
