import { changedLines } from '../assembly/epoch/changed-lines.js';
import type { FileAccess, LocatedFile } from '../client/file-access.js';
import type { ReportedReading } from '../client/session/call-report.js';
import type { SeenFiles } from '../client/session/seen-files.js';
import { SourceError } from '../filesystem/access/errors.js';
import type { SourceReading } from '../filesystem/access/read-source.js';
import { shownName } from './framing.js';

/**
 * The report on a file that an agent wanted to change, and that differs from the version it saw
 * last.
 */
export interface ChangedSince {
  readonly message: string;
  readonly next: string;
  /** The reading of the current file. */
  readonly reading: ReportedReading;
}

/**
 * Maximum length of the changed lines in a report. Failures should be short, and lines are never
 * cut.
 */
const MOST_CHARS = 1_200;

/** A file that an agent is about to change. `name` is the agent's name for it. */
export interface FileToChange extends Pick<LocatedFile, 'source'> {
  readonly name: string;
}

/**
 * Compares a file with what the agent last saw of it. Each difference is reported once, so the
 * agent can repeat its change deliberately.
 */
export function changedSince(
  seen: SeenFiles,
  { source, name }: FileToChange,
  reading: SourceReading,
): ChangedSince | undefined {
  const changed = seen.changed(source, reading);
  if (changed === undefined) return undefined;
  const lines = changedLines(changed.before, changed.after);
  const told =
    lines !== undefined && lines.length <= MOST_CHARS ? `. The changed lines with their numbers:\n${lines}` : '.';
  const message = `${shownName(name)} was changed on the disk since you last saw it${told}`;
  const next =
    told === '.'
      ? 'Nothing was done. Read it, then change it.'
      : 'Nothing was done. If your change still fits, make it again.';
  return { message, next, reading: { source, reading, activate: false } };
}

/**
 * Reads a file as it is now. Undefined for files that do not exist or cannot be read, which the
 * tool itself reports.
 */
async function readNow(
  files: FileAccess,
  path: string,
): Promise<{ readonly file: LocatedFile; readonly reading: SourceReading } | undefined> {
  try {
    const file = await files.locate(path, { mustExist: false });
    return file.location.reachable ? { file, reading: await files.read(file.source) } : undefined;
  } catch (error) {
    if (error instanceof SourceError) return undefined;
    throw error;
  }
}

/**
 * Compares the files that a call is about to change with what the agent last saw. If none differs,
 * they count as being changed until the call is recorded. Otherwise a second change in the same
 * step would be reported.
 */
export async function changedBefore(
  files: FileAccess,
  seen: SeenFiles,
  paths: readonly string[],
): Promise<ChangedSince | undefined> {
  const found = await Promise.all(paths.map(async (path) => ({ path, now: await readNow(files, path) })));
  for (const { path, now } of found) {
    const changed =
      now === undefined ? undefined : changedSince(seen, { source: now.file.source, name: path }, now.reading);
    if (changed !== undefined) return changed;
  }
  for (const { now } of found) if (now !== undefined) seen.changing(now.file.id);
  return undefined;
}
