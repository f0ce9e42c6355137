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

/** Flags that all questions about the past share. */
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
  /** Whether ids are shown after names. */
  readonly ids?: boolean;
  /** False with `--no-content`. */
  readonly content?: boolean;
}

/** The database and settings that a question is answered from. The opener closes it. */
export interface Review extends JournalNotes {
  readonly timeline: Timeline;
  readonly dataDir: string;
  /**
   * The folder for leases and journals of this database's clients. A node that another program runs
   * has a separate folder.
   */
  readonly clientDir: string;
  close(): Promise<void>;
}

/** An answer, as text for people and as JSON for programs. */
export interface Answer {
  /** Each item is exactly one line; the producer splits texts into lines. */
  readonly lines: (colours: Colours, width: number | undefined) => readonly string[];
  /** The moment that the answer is valid for, in words. */
  readonly holds?: string;
  /**
   * Builds the answer in its wire format. It is lazy because making the schemas that check it takes
   * longer than making an answer.
   */
  readonly json: () => object | Promise<object>;
  /** Sentences on what was left out. */
  readonly notes?: readonly string[];
  /** Whether the lines are a list: a terminal gets each of them cut to its width. */
  readonly isList?: true;
  /** Text to write byte for byte; a terminal gets escapes for its control characters. */
  readonly exact?: string;
}

/** Opens the configured database. A node that already runs keeps its own profile. */
async function openPast(settings: Settings): Promise<OpenStore> {
  const report = (message: string): void => {
    if (process.stderr.isTTY) tell(message);
  };
  return openStore(await settingsOfPast(settings), report);
}

/**
 * Returns the paths that a relative path may mean in the working folder: as written, and with links
 * resolved, as canonical paths are.
 */
function inWorkingFolder(path: string): readonly string[] {
  const absolute = resolve(path);
  try {
    return [absolute, realpathSync(absolute)];
  } catch {
    // A file of the past may no longer exist.
    return [absolute];
  }
}

/**
 * Opens the database of a data folder for reading. Starts its node if it does not run.
 *
 * @throws {UsageError} `usage` if a flag or variable is invalid.
 * @throws {HistoryError} `unknown-session` if there is no data folder.
 * @throws {NodeError} if the node cannot be started.
 * @throws {XtdbError} if the database does not answer.
 */
export async function openReview(flags: Pick<ReviewFlags, 'data' | 'mount'>): Promise<Review> {
  // One file is read here, and compiling a schema takes longer than validating it directly.
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
 * Opens the database, answers one question and closes it. A failure becomes one line, or one object
 * with `--json`.
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
 * Formats a time in a form that `--at` accepts. A terminal gets the local time to the second, other
 * outputs UTC with milliseconds.
 */
export const shownTime = (time: Date): string =>
  standardOutput({}).isTerminal ? localSecond(time) : time.toISOString();

/** Formats the time from one moment to another. On a terminal the day appears once. */
export function shownTimes(from: Date, to: Date): string {
  const [first, last] = [shownTime(from), shownTime(to)];
  if (first === last) return first;
  const isSameDay = standardOutput({}).isTerminal && first.slice(0, 10) === last.slice(0, 10);
  return `${first} to ${isSameDay ? last.slice(11, 19) : last}`;
}

/** Formats both clocks of a basis in words. */
export function basisText({ validTime, txId }: Basis): string {
  const known = txId === undefined ? 'no transaction' : `transaction ${txId}`;
  const time = reportedTime(validTime);
  return time === undefined
    ? `the newest versions known after ${known}`
    : `what was true at ${shownTime(time)}, as known after ${known}`;
}

/** Formats a point in words: its place in a session, if it has one, and its basis. */
export function pointText({ place, basis }: Point): string {
  const where =
    place === undefined
      ? ''
      : `turn ${place.turn}, step ${place.seq} of session ${place.session}${place.isEnd ? ' (its end)' : ''}: `;
  return `${where}${basisText(basis)}`;
}
