import { mkdir, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { escapedLine, printJson, printLines, printText, reportFailure, tell } from '../../cli/output.js';
import { limitYoungGeneration } from '../../cli/young-generation.js';
import { noteImported } from '../../host/imported-sessions.js';
import { readSettings } from '../../host/settings.js';
import { sessionId } from '../../objects/ids.js';
import { systemCode } from '../../process/system-error.js';
import { defined } from '../../values/defined.js';
import { codeOf, errorOf } from '../../values/thrown.js';
import { recordedPlace, summariseRecording } from '../replay/dry-run.js';
import { findRecordings, othersLine } from '../replay/find-recordings.js';
import { parseReplayConfig } from '../replay/replay-config.js';
import { openReplayDatabase } from '../replay/replay-database.js';
import { ReplayError } from '../replay/replay-error.js';
import { type ReplayOutcome, replayInBatches, writeReports } from '../report/replay-many.js';
import type { ReplayReport } from '../report/replay-report.js';
import { reportMarkdown } from '../report/report-markdown.js';
import { readConfig } from './read-config.js';

/** Flags of `palimpsest replay`, as commander passes them. */
export interface ReplayFlags {
  readonly into?: string;
  readonly config?: string;
  readonly out?: string;
  readonly data?: string;
  readonly jobs?: number;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/**
 * Size of V8's young generation. Contexts are large and short-lived. A smaller size would cost
 * time, and a larger one memory.
 */
const YOUNG_BYTES = 8 * 1_048_576;
/**
 * Maximum growth of V8's old generation between collections. The default is several times as large.
 */
const GROWING_PERCENT = 20;

/** Creates the folder for reports, before the first replay begins. */
async function reportFolder(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
    throw new ReplayError(
      'bad-target',
      `--out ${path} cannot be written (${systemCode(cause) ?? 'unknown error'}); name a folder`,
      {
        cause,
      },
    );
  });
}

/**
 * Stores a recording's agent and folder for the list of sessions. If a session has no title, the
 * list shows its first words.
 */
export async function noteReplayed(
  dataDir: string,
  path: string,
  { recording, sessions }: Pick<ReplayReport, 'recording' | 'sessions'>,
): Promise<void> {
  const [first] = sessions;
  if (first === undefined) return;
  const [{ mtimeMs: mtime }, place] = await Promise.all([stat(path), recordedPlace(path)]);
  const agent = recording.formats[0] ?? 'replay';
  await noteImported(dataDir, first.session, { agent, ...place, title: '', path, size: recording.bytes, mtime });
}

async function reportOutcome(outcome: ReplayOutcome, flags: ReplayFlags): Promise<void> {
  if ('error' in outcome) {
    reportFailedRecording(outcome.job.path, outcome.error, flags);
    return;
  }
  const { report, job } = outcome;
  if (flags.data !== undefined) await noteReplayed(flags.data, job.path, report);
  reportMissing(report.recording.name, report.sessions.length, report);
  if (flags.out !== undefined) tell(escapedLine(`${await writeReports(flags.out, report)}.{json,md}`));
  if (flags.json) printJson(report);
  else printText(reportMarkdown(report));
}

/** Runs `palimpsest replay`. */
export async function replayAction(files: readonly string[], flags: ReplayFlags): Promise<void> {
  limitYoungGeneration(YOUNG_BYTES);
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  await reportFailure(flags, async () => {
    const config = await readConfig(flags.config, parseReplayConfig);
    if (flags.into !== undefined) sessionId(flags.into);
    const progress = (line: string): void => tell(escapedLine(line));
    const { paths, failures, others } = await findRecordings(files);
    if (flags.into !== undefined && paths.length > 1) {
      throw new ReplayError(
        'bad-target',
        `--into ${flags.into} names one session for ${paths.length} recordings: replay them one by one, or omit it`,
      );
    }
    for (const { path, error } of failures) reportFailedRecording(path, error, flags);
    for (const one of others) progress(othersLine(one));
    if (paths.length === 0) return;
    if (flags.dryRun) return dryRun(paths, flags, progress);
    await reportFolder(flags.out);
    const { dataDir: _shared, ...node } = readSettings(process.env).node;
    const stop = new AbortController();
    const onSignal = (): void =>
      stop.abort(new ReplayError('interrupted', 'the replay was interrupted; with --data the same command resumes it'));
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
    try {
      const jobs = paths.map((path) => ({ path, config, ...defined({ into: flags.into }) }));
      await replayInBatches(jobs, {
        open: () => openReplayDatabase(flags.data, { ...node, onProgress: progress }),
        // With a data folder there are no batches, because its node stores the data on disk.
        ...(flags.data === undefined ? {} : { batchBytes: Number.POSITIVE_INFINITY }),
        jobs: flags.jobs ?? availableParallelism(),
        onProgress: progress,
        onOutcome: (outcome) => reportOutcome(outcome, flags),
        signal: stop.signal,
      });
    } finally {
      process.off('SIGINT', onSignal);
      process.off('SIGTERM', onSignal);
    }
  });
}

const REPORT_EVERY_MS = 2_000;
/** Maximum number of losses that are printed. The JSON report has more, up to its own limit. */
const SHOWN_LOSSES = 20;

/** Reports a recording that could not be replayed. */
function reportFailedRecording(path: string, error: Error, flags: ReplayFlags): void {
  process.exitCode = 1;
  const code = codeOf(error) ?? 'error';
  if (flags.json) printJson({ recording: { name: basename(path) }, error: { code, message: error.message } });
  else tell(`palimpsest: ${error.message}`);
}

/** Reports a recording that is partly or wholly unreadable. */
function reportMissing(
  name: string,
  sessions: number,
  { complete, losses }: { readonly complete: boolean; readonly losses: { readonly total: number } },
): void {
  if (!complete || (sessions === 0 && losses.total > 0)) process.exitCode = 1;
  if (!complete) tell(escapedLine(`palimpsest: ${name} is truncated: its report lacks the rest`));
  else if (sessions === 0) {
    const lacks = losses.total > 0 ? 'readable session; its report states the reason' : 'session';
    tell(escapedLine(`palimpsest: ${name} holds no ${lacks}`));
  }
}

const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;

/** Runs `--dry-run`: prints a line for each recording, followed by its losses. Uses no database. */
async function dryRun(paths: readonly string[], flags: ReplayFlags, progress: (line: string) => void): Promise<void> {
  for (const path of paths) {
    let reported = Date.now();
    const onProgress = (done: number, total: number): void => {
      if (Date.now() - reported < REPORT_EVERY_MS) return;
      reported = Date.now();
      progress(`${basename(path)}: ${Math.floor((100 * done) / Math.max(1, total))} % read`);
    };
    try {
      const summary = await summariseRecording(path, onProgress);
      reportMissing(summary.recording.name, summary.sessions, summary);
      if (flags.json) {
        printJson(summary);
        continue;
      }
      const { recording, sessions, messages, calls, results, losses } = summary;
      const said = Object.entries(messages).map(([role, count]) => `${count} ${role}`);
      const held = [
        counted(sessions, 'session'),
        `messages: ${said.join(', ') || 'none'}`,
        counted(calls, 'call'),
        counted(results, 'result'),
      ];
      printLines([`${recording.name}: ${recording.formats.join(', ')}, ${held.join(', ')}`]);
      for (const { reason, place, detail } of losses.each.slice(0, SHOWN_LOSSES))
        printLines([`  ${reason}, ${place}: ${detail}`]);
      if (losses.total > SHOWN_LOSSES) printLines([`  and ${losses.total - SHOWN_LOSSES} more; --json has them`]);
    } catch (error) {
      reportFailedRecording(path, errorOf(error), flags);
    }
  }
}
