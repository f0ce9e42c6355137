import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { defined } from '../../values/defined.js';
import { type CorpusFile, findCorpus } from '../replay/find-recordings.js';
import type { ReplayDatabase } from '../replay/replay-database.js';
import { ReplayError } from '../replay/replay-error.js';
import { type ReplayOutcome, replayInBatches, writeReports } from '../report/replay-many.js';
import type { ReplayReport } from '../report/replay-report.js';
import { type Experiment, experimentResult } from './experiment.js';
import { experimentMarkdown } from './experiment-markdown.js';

/** Where and with what an experiment runs. */
export interface ExperimentRun {
  readonly experiment: Experiment;
  /** Folder of the recordings. */
  readonly corpus: string;
  /** Folder that gets the result folder. */
  readonly out: string;
  /** Opens a database for a batch of replays. */
  readonly open: () => Promise<ReplayDatabase>;
  readonly jobs: number;
  /** Whether the report of every replay is written too. Reports name the files of the recordings, so they are not for everybody. */
  readonly reports: boolean;
  /** The command line, commit and date that the results name. */
  readonly command: string;
  readonly commit: string;
  readonly date: string;
  readonly onProgress?: (line: string) => void;
  readonly signal?: AbortSignal;
}

function chosen(all: readonly CorpusFile[], wanted: readonly string[]): readonly CorpusFile[] {
  const files = all.filter(({ name }) => wanted.some((one) => one === '*' || name === one || name.startsWith(one)));
  const unknown = wanted.find((one) => one !== '*' && !all.some(({ name }) => name === one || name.startsWith(one)));
  if (unknown !== undefined)
    throw new ReplayError(
      'bad-config',
      `sessions: the corpus has no recording ${JSON.stringify(unknown)}; its names are those below PALIMPSEST_CORPUS`,
    );
  return files;
}

/** The hash of a set of recordings, by their contents alone. */
export function corpusHash(reports: readonly ReplayReport[]): string {
  const hashes = [...new Set(reports.map(({ recording }) => recording.sha256))].sort();
  return createHash('sha256').update(hashes.join('\n')).digest('hex');
}

/** JSON with one result on each line, so that a later run can be compared line by line. */
const jsonLines = (fields: Readonly<Record<string, unknown>>, results: readonly unknown[]): string =>
  `${JSON.stringify(fields, undefined, 1).replace(/\n}$/, '')},\n "results": [\n${results.map((one) => `  ${JSON.stringify(one)}`).join(',\n')}\n ]\n}\n`;

/**
 * Runs an experiment: replays every chosen recording with every set of parameters. Writes the result folder `DATE-NAME` with the command, the commit, the hash of
 * the corpus and the figures (`figures.md`, `experiment.json`), but no text, name or path of a recording; a person adds what the figures mean. Returns the folder
 * and the number of failed replays.
 * @throws {ReplayError} bad-target – the corpus folder cannot be read
 * @throws {ReplayError} bad-config – the corpus has no recording of a given name
 */
export async function runExperiment(run: ExperimentRun): Promise<{ readonly folder: string; readonly failed: number }> {
  const { experiment, open, jobs, onProgress, signal } = run;
  const files = chosen((await findCorpus(run.corpus)).files, experiment.sessions);
  const names = new Map(files.map(({ path, name }) => [path, name]));
  const all = files.flatMap(({ path }) => experiment.parameters.map(({ name, config }) => ({ path, config, variant: name })));
  const folder = join(run.out, `${run.date}-${experiment.name}`);
  await mkdir(folder, { recursive: true });
  let done = 0;
  const outcomes = await replayInBatches(all, {
    open,
    jobs,
    ...defined({ onProgress, signal }),
    onOutcome: async (outcome: ReplayOutcome) => {
      if ('report' in outcome && run.reports) await writeReports(join(folder, 'replays'), outcome.report);
      done += 1;
      const what = 'report' in outcome ? `${outcome.ms} ms` : outcome.error.message;
      onProgress?.(`${done}/${all.length} ${names.get(outcome.job.path)} ${outcome.job.variant}: ${what}`);
    },
  });
  const reports = outcomes.flatMap((outcome) => ('report' in outcome ? [outcome.report] : []));
  const failures = outcomes.flatMap((outcome) =>
    'error' in outcome ? [`${outcome.job.variant}: ${outcome.error.message.replaceAll(run.corpus, 'CORPUS')}`] : [],
  );
  const results = reports.map(experimentResult);
  const { command, commit, date } = run;
  const about = { experiment, command, commit, date, corpus: corpusHash(reports), failures };
  await writeFileAtomic(join(folder, 'experiment.json'), jsonLines(about, results));
  await writeFileAtomic(join(folder, 'figures.md'), experimentMarkdown(about, results));
  return { folder, failed: failures.length };
}
