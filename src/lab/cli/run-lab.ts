import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { escapedLine, printJson, printText, reportFailure, tell } from '../../cli/output.js';
import { readSettings } from '../../host/settings.js';
import { optimiseLate } from '../../process/optimise-late.js';
import { defined } from '../../values/defined.js';
import { type LabConfig, parseLabConfig } from '../laboratory/lab-config.js';
import { labMarkdown } from '../laboratory/lab-markdown.js';
import { labWorker } from '../laboratory/lab-threads.js';
import { type LabRun, runLab } from '../laboratory/run-lab.js';
import { verdictsOf } from '../laboratory/verdicts.js';
import { writeLab } from '../laboratory/write-lab.js';
import { findRecordings, othersLine } from '../replay/find-recordings.js';
import { openReplayDatabase } from '../replay/replay-database.js';
import { ReplayError } from '../replay/replay-error.js';
import { readConfig } from './read-config.js';

/** Flags of `palimpsest lab`, as commander passes them. */
export interface LabFlags {
  readonly config?: string;
  readonly least?: number;
  readonly out?: string;
  readonly jobs?: number;
  readonly json?: boolean;
  readonly sweep?: boolean;
  readonly train?: readonly string[];
  readonly test?: readonly string[];
}

/** Reads the configuration file. Flags take precedence over it. */
async function labConfig({ config: path, least, sweep }: LabFlags): Promise<LabConfig> {
  if (path === undefined) return parseLabConfig(defined({ least, sweep }), 'no configuration');
  return { ...(await readConfig(path, parseLabConfig)), ...defined({ least }) };
}

/**
 * Prints the recordings that are unreadable or incomplete. The report itself does not list them.
 */
function reportMissing({ report, failures }: LabRun): void {
  if (report.missing > 0) {
    process.exitCode = 1;
    tell(`palimpsest: interrupted: the report lacks ${report.missing} recordings`);
  }
  for (const { path, error } of failures) tell(`palimpsest: ${escapedLine(basename(path))}: ${error.message}`);
  if (failures.length > 0 || report.sessions.some(({ complete }) => !complete)) process.exitCode = 1;
  for (const { name, complete } of report.sessions) {
    if (!complete) tell(`palimpsest: the recording of ${escapedLine(name)} is truncated: the report lacks the rest`);
  }
}

/** Runs `palimpsest lab`. */
export async function labAction(files: readonly string[], flags: LabFlags): Promise<void> {
  optimiseLate();
  await reportFailure(flags, async () => {
    const config = await labConfig(flags);
    const progress = (line: string): void => tell(escapedLine(line));
    const { train = [], test = [] } = flags;
    if (files.length + train.length + test.length === 0)
      throw new ReplayError('bad-target', 'name recordings or folders of them, or give --train and --test');
    if ((train.length === 0) !== (test.length === 0))
      throw new ReplayError(
        'bad-target',
        'give both --train and --test: settings are chosen on one and reported on the other',
      );
    const { paths, failures, others } = await findRecordings([...files, ...train, ...test]);
    const named = train.length === 0 ? undefined : new Set((await findRecordings(train)).paths);
    for (const { path, error } of failures) {
      process.exitCode = 1;
      tell(`palimpsest: ${escapedLine(path)}: ${error.message}`);
    }
    for (const one of others) progress(othersLine(one));
    if (paths.length === 0) return;
    const { dataDir: _shared, ...node } = readSettings(process.env).node;
    const stop = new AbortController();
    const onSignal = (): void =>
      stop.abort(
        new ReplayError(
          'interrupted',
          'the laboratory run was interrupted before its first session was complete; nothing was written',
        ),
      );
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
    try {
      const run = await runLab(paths, {
        config,
        open: () => openReplayDatabase(undefined, { ...node, onProgress: progress }),
        jobs: flags.jobs ?? availableParallelism(),
        worker: labWorker(),
        onProgress: progress,
        signal: stop.signal,
        ...defined({ train: named }),
      });
      reportMissing(run);
      if (run.report.sessions.length === 0) {
        throw new ReplayError(
          'bad-target',
          `no session of these recordings has at least ${config.least} model calls (${run.report.leftOut} have ` +
            'fewer): name longer ones, or lower --least',
        );
      }
      if (flags.out !== undefined) for (const path of await writeLab(flags.out, run)) tell(escapedLine(path));
      if (flags.json) printJson(run.report);
      else if (flags.out === undefined) printText(labMarkdown(run.report));
      for (const sentence of verdictsOf(run.report)) tell(sentence);
    } finally {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    }
  });
}
