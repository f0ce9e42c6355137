import { mkdir, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { escapedJson, escapedLine, escapedText } from '../../cli/escape-text.js';
import { reportFailure } from '../../cli/report-failure.js';
import { nodeOptions, readSettings } from '../../cli/settings.js';
import { limitYoungGeneration } from '../../cli/young-generation.js';
import { sessionId } from '../../objects/ids.js';
import { systemCode } from '../../process/system-error.js';
import { defined } from '../../values/defined.js';
import { excerpt } from '../recordings/entries/losses.js';
import { findRecordings } from '../replay/find-recordings.js';
import { parseReplayConfig, type ReplayConfig } from '../replay/replay-config.js';
import { openReplayDatabase } from '../replay/replay-database.js';
import { ReplayError } from '../replay/replay-error.js';
import { type ReplayOutcome, replayInBatches, writeReports } from '../report/replay-many.js';
import { reportMarkdown } from '../report/report-markdown.js';
import { dryRun, tellFailure, tellMissing } from './replay-dry-run.js';
import type { ReplayFlags } from './replay-flags.js';

/** Contexts are large and soon gone: collected often they cost time, rarely they cost memory. */
const YOUNG_BYTES = 8 * 1_048_576;
/** How far the old part of the heap may grow over what lived when it was collected last; V8's own choice is several times as much. */
const GROWING_PERCENT = 20;

async function readConfig(path: string | undefined): Promise<ReplayConfig> {
  if (path === undefined) return parseReplayConfig({}, 'no configuration');
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new ReplayError('bad-config', `--config ${path} cannot be read (${systemCode(cause) ?? 'unknown error'}); name a JSON file`, {
      cause,
    });
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ReplayError('bad-config', `--config ${path} is no JSON: ${String(cause)}`, { cause });
  }
  return parseReplayConfig(value, `--config ${path}`);
}

/** A folder for reports, made before anything is replayed. */
async function reportFolder(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  await mkdir(path, { recursive: true }).catch((cause: unknown) => {
    throw new ReplayError('bad-target', `--out ${path} cannot be written (${systemCode(cause) ?? 'unknown error'}); name a folder`, {
      cause,
    });
  });
}

async function tell(outcome: ReplayOutcome, flags: ReplayFlags): Promise<void> {
  if ('error' in outcome) {
    tellFailure(outcome.job.path, outcome.error, flags);
    return;
  }
  const { report } = outcome;
  tellMissing(report.recording.name, report.sessions.length, report);
  if (flags.out !== undefined) console.error(escapedLine(`${await writeReports(flags.out, report)}.{json,md}`));
  if (flags.json) console.log(escapedJson(report));
  else console.log(escapedText(reportMarkdown(report)));
}

/** `replay` */
export async function replayAction(files: readonly string[], flags: ReplayFlags): Promise<void> {
  limitYoungGeneration(YOUNG_BYTES);
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  await reportFailure(flags, async () => {
    const config = await readConfig(flags.config);
    if (flags.into !== undefined) sessionId(flags.into);
    const progress = (line: string): void => console.error(escapedLine(line));
    const { paths, failures, others } = await findRecordings(files);
    if (flags.into !== undefined && paths.length > 1) {
      throw new ReplayError(
        'bad-target',
        `--into ${flags.into} names one session for ${paths.length} recordings; replay them one by one, or leave it out`,
      );
    }
    for (const { path, error } of failures) tellFailure(path, error, flags);
    for (const { folder, names } of others) progress(`${folder}: ${names.length} files are no recordings: ${excerpt(names.join(', '))}`);
    if (paths.length === 0) return;
    if (flags.dryRun) return dryRun(paths, flags, progress);
    await reportFolder(flags.out);
    const { dataDir: _shared, ...node } = nodeOptions(readSettings(process.env, {}));
    const stop = new AbortController();
    const onSignal = (): void =>
      stop.abort(new ReplayError('interrupted', 'the replay was interrupted; with --data-dir the same command goes on from there'));
    process.once('SIGINT', onSignal);
    process.once('SIGTERM', onSignal);
    try {
      const jobs = paths.map((path) => ({ path, config, ...defined({ into: flags.into }) }));
      await replayInBatches(jobs, {
        open: () => openReplayDatabase(flags.dataDir, { ...node, onProgress: progress }),
        // A data folder is one database, and its node keeps what is written on the disk.
        ...(flags.dataDir === undefined ? {} : { batchBytes: Number.POSITIVE_INFINITY }),
        jobs: flags.jobs ?? availableParallelism(),
        onProgress: progress,
        onOutcome: (outcome) => tell(outcome, flags),
        signal: stop.signal,
      });
    } finally {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    }
  });
}
