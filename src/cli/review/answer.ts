import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { config } from 'zod';
import { localFilesystemId } from '../../filesystem/access/filesystem-id.js';
import { MountTable } from '../../filesystem/access/mounts.js';
import { type Point, Timeline } from '../../history/rebuild/timeline.js';
import { type OpenStore, openStore } from '../../host/open-store.js';
import { settingsOfPast } from '../../host/past-settings.js';
import { readMounts, readSettings, type Settings } from '../../host/settings.js';
import { clientFolder } from '../../process/data-folder.js';
import { reportedTime } from '../../store/object-store.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import { shortened, wrapped } from '../fitted-table.js';
import {
  type Colours,
  coloursFor,
  escapedLine,
  reportFailure,
  standardOutput,
  tell,
  writeExactly,
  writeJson,
  writeOutput,
} from '../output.js';
import { localSecond } from '../shown-values.js';
import { type JournalNotes, settleJournals } from './settle-journals.js';

/** Flags of all questions about the past. */
export interface ReviewFlags {
  readonly data?: string;
  readonly mount?: readonly string[];
  readonly json?: boolean;
  /** False with `--no-pager`. */
  readonly pager?: boolean;
  readonly at?: string;
  readonly asOf?: string;
  readonly validTime?: string;
  readonly tx?: string;
  readonly session?: string;
  readonly object?: string;
  readonly limit?: number;
  readonly context?: number;
  readonly raw?: boolean;
  readonly assemble?: boolean;
  readonly prefix?: boolean;
  readonly format?: string;
  readonly timeout?: number;
  readonly args?: string;
  readonly storage?: boolean;
  readonly query?: string;
  /** Whether to show ids after names. */
  readonly ids?: boolean;
  /** False with `--no-content`. */
  readonly content?: boolean;
}

/** The database and settings for a question. The code that opened it must close it. */
export interface Review extends JournalNotes {
  readonly timeline: Timeline;
  readonly dataDir: string;
  /**
   * The folder with leases and journals of this database's clients. A node that another program
   * runs has its own folder.
   */
  readonly clientDir: string;
  close(): Promise<void>;
}

/** An answer: text for people and JSON for programs. */
export interface Answer {
  /** The answer as text. Each item must be exactly one line. */
  readonly lines: (colours: Colours, width: number | undefined) => readonly string[];
  /** The moment for which the answer holds, in words. */
  readonly holds?: string;
  /**
   * Returns the answer as JSON. It is made only if needed, because the schemas that check it take
   * longer to build than the answer.
   */
  readonly json: () => object | Promise<object>;
  /** Sentences that say what was left out. */
  readonly notes?: readonly string[];
  /** Set if the lines are a list. On a terminal, each line is cut to its width. */
  readonly isList?: true;
  /** A text to write byte for byte. On a terminal, control characters are escaped. */
  readonly exact?: string;
}

/** Opens the configured database. A node that already runs keeps its profile. */
async function openPast(settings: Settings): Promise<OpenStore> {
  const report = (message: string): void => {
    if (process.stderr.isTTY) tell(message);
  };
  return openStore(await settingsOfPast(settings), report);
}

/**
 * Returns the absolute paths that a relative path may mean in the working folder. Canonical paths
 * have no links, so one path has them resolved.
 */
function inWorkingFolder(path: string): readonly string[] {
  const absolute = resolve(path);
  try {
    return [absolute, realpathSync(absolute)];
  } catch {
    // The file may no longer exist.
    return [absolute];
  }
}

/**
 * Opens the database of a data folder for reading. If its node does not run, starts it.
 *
 * @throws {UsageError} `usage` if a flag or variable is invalid.
 * @throws {HistoryError} `unknown-session` if there is no data folder.
 * @throws {NodeError} if the node cannot be started.
 * @throws {XtdbError} if the database does not answer.
 */
export async function openReview(flags: Pick<ReviewFlags, 'data' | 'mount'>): Promise<Review> {
  // Only one file is validated here. Compiling its schema would take longer than validating
  // without.
  config({ jitless: true });
  const settings = readSettings(process.env, flags);
  const mappings = readMounts(flags.mount);
  const { dataDir } = settings.node;
  const { store, close } = await openPast(settings);
  try {
    const mounts = new MountTable({ mappings, defaultFilesystemId: await localFilesystemId(dataDir) });
    const journals = await settleJournals(settings);
    const paths = {
      display: ({ path, filesystemId }: Parameters<Timeline['paths']['display']>[0]) =>
        mounts.toDisplay(path, filesystemId),
      here: inWorkingFolder,
      sourcesAt: (path: string) => mounts.sourcesAt(path),
    };
    return {
      timeline: await Timeline.open(store, paths),
      ...journals,
      dataDir,
      clientDir: clientFolder(dataDir, settings.nodeUrl),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Opens the database, answers one question, and closes the database. A failure is one line, or with
 * `--json` one object.
 */
export async function answerReview(flags: ReviewFlags, ask: (review: Review) => Promise<Answer>): Promise<void> {
  await reportFailure(flags, async () => {
    const review = await openReview(flags);
    try {
      const answer = await ask(review);
      const notes = [...review.notes, ...(answer.notes ?? [])];
      const target = standardOutput(flags);
      const colours = coloursFor(target);
      if (flags.json === true) return await writeJson({ ...(await answer.json()), notes });
      if (answer.exact !== undefined && !target.isTerminal) {
        for (const note of notes) tell(`# ${note}`);
        return await writeExactly(answer.exact);
      }
      const remarks = (texts: readonly string[], colour: (text: string) => string): readonly string[] =>
        texts.flatMap((text) => wrapped(escapedLine(text), target.width, '# ')).map(colour);
      const closing = [
        ...remarks(answer.holds === undefined ? [] : [answer.holds], colours.dim),
        ...remarks(notes, colours.yellow),
      ];
      const lines = answer.lines(colours, target.width);
      const { width } = target;
      const fitted = answer.isList === true && width !== undefined ? lines.map((one) => shortened(one, width)) : lines;
      await writeOutput([...fitted, ...closing], target);
    } finally {
      await review.close();
    }
  });
}

/**
 * Formats a time so that `--at` accepts it. A terminal gets local time to the second, and other
 * outputs UTC with milliseconds.
 */
export const shownTime = (time: Date): string =>
  standardOutput({}).isTerminal ? localSecond(time) : time.toISOString();

/** Formats a span of time. On a terminal, the day is shown only once. */
export function shownTimes(from: Date, to: Date): string {
  const [first, last] = [shownTime(from), shownTime(to)];
  if (first === last) return first;
  const isSameDay = standardOutput({}).isTerminal && first.slice(0, 10) === last.slice(0, 10);
  return `${first} to ${isSameDay ? last.slice(11, 19) : last}`;
}

/** Formats the two clocks of a basis in words. */
export function basisText({ validTime, txId }: Basis): string {
  const known = txId === undefined ? 'no transaction' : `transaction ${txId}`;
  const time = reportedTime(validTime);
  return time === undefined
    ? `the newest versions known after ${known}`
    : `what was true at ${shownTime(time)}, as known after ${known}`;
}

/** Formats a moment in words: its place in a session, if it has one, and its basis. */
export function pointText({ place, basis }: Point): string {
  const where =
    place === undefined
      ? ''
      : `turn ${place.turn}, step ${place.seq} of session ${place.session}${place.isEnd ? ' (its end)' : ''}: `;
  return `${where}${basisText(basis)}`;
}
