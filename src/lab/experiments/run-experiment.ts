import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { type CorpusFile, findCorpus } from '../replay/find-recordings.js';
import { ReplayError } from '../replay/replay-error.js';
import { writeReports } from '../report/replay-many.js';
import { type Experiment, experimentResult } from './experiment.js';
import { experimentMarkdown } from './experiment-markdown.js';
import { type CorpusRun, corpusHash, failureOf, replayJobs } from './replay-corpus.js';

/** An experiment and the settings of its replays. */
interface ExperimentRun extends CorpusRun {
  readonly experiment: Experiment;
  /**
   * Whether each replay's report is also written. Reports name the recorded files, so they are
   * confidential.
   */
  readonly reports: boolean;
}

function chosen(all: readonly CorpusFile[], wanted: readonly string[]): readonly CorpusFile[] {
  const files = all.filter(({ name }) => wanted.some((one) => one === '*' || name === one || name.startsWith(one)));
  const unknown = wanted.find((one) => one !== '*' && !all.some(({ name }) => name === one || name.startsWith(one)));
  if (unknown !== undefined)
    throw new ReplayError(
      'bad-config',
      `sessions: the corpus has no recording ${JSON.stringify(unknown)}; use names below PALIMPSEST_CORPUS`,
    );
  return files;
}

/** Writes JSON with one result per line, so that a line diff can compare runs. */
const jsonLines = (fields: Readonly<Record<string, unknown>>, results: readonly unknown[]): string => {
  const head = JSON.stringify(fields, undefined, 1).replace(/\n}$/, '');
  return `${head},\n "results": [\n${results.map((one) => `  ${JSON.stringify(one)}`).join(',\n')}\n ]\n}\n`;
};

/**
 * Runs an experiment: replays every chosen recording with every set of parameters. Writes the
 * folder `DATE-NAME` with `figures.md` and `experiment.json`. The files name the command, the
 * commit and the corpus hash, but no text, name or path of a recording. Returns the folder and the
 * number of failed replays.
 *
 * @throws {ReplayError} bad-target – the corpus folder cannot be read
 * @throws {ReplayError} bad-config – the corpus has no recording of a given name
 */
export async function runExperiment(run: ExperimentRun): Promise<{ readonly folder: string; readonly failed: number }> {
  const { experiment, command, commit, date } = run;
  const files = chosen((await findCorpus(run.corpus)).files, experiment.sessions);
  const all = files.flatMap((file) =>
    experiment.parameters.map(({ name, config }) => ({ ...file, config, variant: name })),
  );
  const folder = join(run.out, `${date}-${experiment.name}`);
  await mkdir(folder, { recursive: true });
  const outcomes = await replayJobs(run, all, async (report) => {
    if (run.reports) await writeReports(join(folder, 'replays'), report);
  });
  const reports = outcomes.flatMap((outcome) => ('report' in outcome ? [outcome.report] : []));
  const failures = outcomes.flatMap((outcome) =>
    'error' in outcome ? [`${outcome.job.variant}: ${failureOf(run, outcome.error)}`] : [],
  );
  const results = reports.map(experimentResult);
  const about = { experiment, command, commit, date, corpus: corpusHash(reports), failures };
  await writeFileAtomic(join(folder, 'experiment.json'), jsonLines(about, results));
  await writeFileAtomic(join(folder, 'figures.md'), experimentMarkdown(about, results));
  return { folder, failed: failures.length };
}
