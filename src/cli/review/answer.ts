import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { config } from 'zod';
import { localFilesystemId } from '../../filesystem/access/filesystem-id.js';
import { MountTable } from '../../filesystem/access/mounts.js';
import { type Point, Timeline } from '../../history/rebuild/timeline.js';
import { type OpenStore, openStore } from '../../host/open-store.js';
import { settingsOfPast } from '../../host/past-settings.js';
import { readMounts, readSettings, type Settings } from '../../host/settings.js';
import { asideFiles, type InspectedJournal, inspectJournals, isBrokenJournal, waitingRecords } from '../../journal/journals.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { clientFolder } from '../../process/data-folder.js';
import { reportedTime } from '../../store/object-store.js';
import { messageOf } from '../../values/thrown.js';
import type { Basis } from '../../xtdb/db-snapshot.js';
import {
  type Colours,
  coloursFor,
  escapedLine,
  progressLine,
  reportFailure,
  standardOutput,
  tell,
  writeExactly,
  writeJson,
  writeOutput,
} from '../output.js';

/** Flags that all questions about the past share, as commander hands them over. */
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
  /** False with `--no-content`. */
  readonly content?: boolean;
}

/** What the journals of a data folder say of what is not in the database. */
interface JournalNotes {
  /** What the answer may lack, in sentences. */
  readonly notes: readonly string[];
  /** False where acknowledged steps cannot be read any more in the journals. */
  readonly isWhole: boolean;
  /** Whether no acknowledged step waited in a journal before the database was read. */
  readonly isSettled: boolean;
  /** Counts the acknowledged steps of each session that wait in a journal, which reads all of them. */
  waitingSteps(): Promise<ReadonlyMap<SessionId, number>>;
}

/** What a question is answered from. Whoever opens it closes it. */
export interface Review extends JournalNotes {
  readonly timeline: Timeline;
  readonly dataDir: string;
  /** Where clients of this database keep leases and journals: a folder of its own for a node that someone else runs. */
  readonly clientDir: string;
  close(): Promise<void>;
}

/** An answer, for people and for programs. */
export interface Answer {
  /** Each is one line: the parts of a text are told apart by the one who makes them. */
  readonly lines: (colours: Colours) => readonly string[];
  /** The moment that the answer holds at, in words. */
  readonly holds?: string;
  /** The answer as the wire has it, which most people do not ask for: its form is checked against schemas that take longer to make than an answer. */
  readonly json: () => object | Promise<object>;
  /** What was left out, in sentences. */
  readonly notes?: readonly string[];
  /** Text that is written byte for byte, except to a terminal, which could act on it. */
  readonly exact?: string;
}

/** What makes the answers of the wire. */
export const wireAnswers = () => import('../../http/review-answers.js');

/** What an object is called: its path, or its id. */
export type NameOf = (id: ObjectId) => string;

/** How long a question waits for the next of the steps that other processes have acknowledged, milliseconds. */
const WAIT_MS = 2_000;
const POLL_EVERY_MS = 50;

/** Opens the database of the settings without changing anything: a node that runs already keeps its profile. */
async function openPast(settings: Settings): Promise<OpenStore> {
  const report = (message: string): void => {
    if (process.stderr.isTTY) tell(message);
  };
  return openStore(await settingsOfPast(settings), report);
}

const isWaiting = ({ pending }: InspectedJournal): boolean => pending > 0;

/** How many steps of each session wait in some journals. */
async function waitingSteps(folder: string, journals: readonly InspectedJournal[]): Promise<ReadonlyMap<SessionId, number>> {
  const counts = new Map<SessionId, number>();
  const { readWrite } = await import('../../client/delivery/damaged-journal.js');
  for (const { owner } of journals) {
    for await (const { payload } of waitingRecords(folder, owner)) {
      const write = readWrite(payload);
      if (!(write instanceof Error)) counts.set(write.session, (counts.get(write.session) ?? 0) + 1);
    }
  }
  return counts;
}

function waitingNote({ holder, pending }: InspectedJournal): string {
  const whose = holder === undefined ? 'a process that ended' : `process ${holder.pid}`;
  return `${pending} acknowledged steps of ${whose} are not in the database yet`;
}

/** How long the database may take nothing of what dead processes left before the question is answered without that, milliseconds. */
const STUCK_MS = 10_000;

/** Delivers what dead processes left; returns notes on what could not be delivered. */
async function deliverLeft(settings: Settings): Promise<readonly string[]> {
  const { deliverJournals } = await import('../../host/deliver-journals.js');
  const notes: string[] = [];
  const line = progressLine();
  try {
    await deliverJournals(settings, {
      what: 'palimpsest review',
      stuckMs: STUCK_MS,
      onNotice: (notice) => notes.push(notice),
      onWaiting: (records) => line.show(`${records} acknowledged steps are being delivered`),
    });
  } catch (error) {
    notes.push(`what processes left that ended could not be delivered: ${messageOf(error)}`);
  } finally {
    line.end();
  }
  return notes;
}

const waitingIn = (journals: readonly InspectedJournal[]): number => journals.reduce((sum, { pending }) => sum + pending, 0);

/**
 * Delivers what dead processes left, and waits until what living ones had acknowledged is in the database, for as long as that gets less; returns notes on what is
 * not there.
 */
async function settleJournals(settings: Settings): Promise<JournalNotes> {
  const folder = clientFolder(settings.node.dataDir, settings.nodeUrl);
  const askedAt = Date.now();
  const isUnderWay = ({ holder, oldestAt }: InspectedJournal): boolean =>
    holder !== undefined && oldestAt !== undefined && oldestAt <= askedAt;
  let notes: readonly string[] = [];
  let journals = await inspectJournals(folder);
  if (journals.some((journal) => isWaiting(journal) && journal.holder === undefined)) {
    notes = await deliverLeft(settings);
    journals = await inspectJournals(folder);
  }
  for (let end = Date.now() + WAIT_MS; journals.some(isUnderWay) && Date.now() < end; ) {
    // Another process delivers; all that can be seen of it is its journal.
    await delay(POLL_EVERY_MS);
    const before = waitingIn(journals);
    journals = await inspectJournals(folder);
    if (waitingIn(journals) < before) end = Date.now() + WAIT_MS;
  }
  const aside = await asideFiles(folder);
  const broken = journals.filter(isBrokenJournal);
  const look = 'look at palimpsest journal salvage';
  const waiting = journals.filter(isWaiting);
  return {
    waitingSteps: () => waitingSteps(folder, waiting),
    notes: [
      ...notes,
      ...waiting.map(waitingNote),
      ...broken.map(({ owner }) => `the journal ${owner} is damaged: steps that were acknowledged may be missing for ever; ${look}`),
      ...aside.map(
        ({ path }) => `${path} was damaged before all of it was delivered: steps that were acknowledged may be missing for ever; ${look}`,
      ),
    ],
    isWhole: broken.length + aside.length === 0,
    isSettled: waiting.length === 0,
  };
}

/** The paths that a relative one may stand for in the working folder: as it is written, and with its links resolved, as canonical paths are. */
function inWorkingFolder(path: string): readonly string[] {
  const absolute = resolve(path);
  try {
    return [absolute, realpathSync(absolute)];
  } catch {
    // A file of the past need not be there any more.
    return [absolute];
  }
}

/**
 * Opens the database of a data folder for reading; its node is started where it does not run.
 * @throws {UsageError} usage – a flag or variable that cannot be used
 * @throws {HistoryError} unknown-session – there is no data folder
 * @throws {NodeError} every code – the node cannot be started
 * @throws {XtdbError} every code – the database does not answer
 */
export async function openReview(flags: Pick<ReviewFlags, 'data' | 'mount'>): Promise<Review> {
  // Compiling a schema takes longer than reading the one file that it reads here.
  config({ jitless: true });
  const settings = readSettings(process.env, flags);
  const mappings = readMounts(flags.mount);
  const { dataDir } = settings.node;
  const { store, close } = await openPast(settings);
  try {
    const mounts = new MountTable({ mappings, defaultFilesystemId: await localFilesystemId(dataDir) });
    const journals = await settleJournals(settings);
    const paths = {
      display: ({ path, filesystemId }: Parameters<Timeline['paths']['display']>[0]) => mounts.toDisplay(path, filesystemId),
      here: inWorkingFolder,
    };
    return { timeline: await Timeline.open(store, paths), ...journals, dataDir, clientDir: clientFolder(dataDir, settings.nodeUrl), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the database, answers one question, closes. A failure becomes one line, or one object with `--json`. */
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
      const holds = answer.holds === undefined ? [] : [colours.dim(`# ${answer.holds}`)];
      const closing = [...holds, ...notes.map((note) => colours.yellow(`# ${escapedLine(note)}`))];
      await writeOutput([...answer.lines(colours), ...closing], target);
    } finally {
      await review.close();
    }
  });
}

/** Digests are long: twelve characters name one well enough. */
export function shortName(id: string): string {
  return /^[0-9a-f]{64}$/.test(id) ? id.slice(0, 12) : escapedLine(id);
}

/** The names of objects: files by their paths, all others by id. One query. */
export async function namesFor({ present, paths }: Timeline, ids: readonly ObjectId[]): Promise<NameOf> {
  const digests = [...new Set(ids)].filter((id) => /^[0-9a-f]{64}$/.test(id));
  const names = new Map<string, string>();
  for (const [id, { source }] of await present.sourcesOf(digests)) names.set(id, paths.display(source));
  return (id) => names.get(id) ?? shortName(id);
}

/** A time as it is printed everywhere: UTC, to the millisecond, in the form that `--at` takes. */
export const shownTime = (time: Date): string => time.toISOString();

/** Both clocks of a basis in words. */
export function basisText({ validTime, txId }: Basis): string {
  const known = txId === undefined ? 'no transaction' : `transaction ${txId}`;
  const time = reportedTime(validTime);
  return time === undefined ? `the newest versions known after ${known}` : `what was true at ${shownTime(time)}, as known after ${known}`;
}

/** A point in words: its place in a session, if it has one, and its basis. */
export function pointText({ place, basis }: Point): string {
  const where =
    place === undefined ? '' : `turn ${place.turn}, step ${place.seq} of session ${place.session}${place.isEnd ? ' (its end)' : ''}: `;
  return `${where}${basisText(basis)}`;
}
