import { setTimeout as delay } from 'node:timers/promises';
import type { Settings } from '../../host/settings.js';
import {
  asideFiles,
  type InspectedJournal,
  inspectJournals,
  isBrokenJournal,
  waitingRecords,
} from '../../journal/journals.js';
import type { SessionId } from '../../objects/ids.js';
import { clientFolder } from '../../process/data-folder.js';
import { messageOf } from '../../values/thrown.js';
import { progressLine } from '../output.js';

/** The state of a data folder's journals: which acknowledged steps the database lacks. */
export interface JournalNotes {
  /** Sentences about what the answer may lack. */
  readonly notes: readonly string[];
  /** False if acknowledged steps in the journals cannot be read. */
  readonly isWhole: boolean;
  /** Whether no acknowledged step was in a journal when the database was read. */
  readonly isSettled: boolean;
  /**
   * Returns the number of acknowledged steps that wait in journals, by session. Reads all journals.
   */
  waitingSteps(): Promise<ReadonlyMap<SessionId, number>>;
}

/**
 * Maximum milliseconds to wait for the delivery of another step that a running process
 * acknowledged.
 */
const WAIT_MS = 2_000;
const POLL_EVERY_MS = 50;

const isWaiting = ({ pending }: InspectedJournal): boolean => pending > 0;

/** Counts the steps that wait in some journals, by session. */
async function waitingSteps(
  folder: string,
  journals: readonly InspectedJournal[],
): Promise<ReadonlyMap<SessionId, number>> {
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
  const whose = holder === undefined ? 'a dead process' : `process ${holder.pid}`;
  return `${pending} acknowledged steps of ${whose} are not in the database yet`;
}

/**
 * If no record of dead processes is delivered for this many milliseconds, the question is answered
 * without the rest.
 */
const STUCK_MS = 10_000;

/**
 * Delivers the journals of dead processes. Returns notes about records that could not be delivered.
 */
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
    notes.push(`the journals of dead processes could not be delivered: ${messageOf(error)}`);
  } finally {
    line.end();
  }
  return notes;
}

const waitingIn = (journals: readonly InspectedJournal[]): number =>
  journals.reduce((sum, { pending }) => sum + pending, 0);

/**
 * Delivers the journals of dead processes. Then waits for steps that running processes have
 * acknowledged, while their number decreases. Returns notes about steps that are still missing.
 */
export async function settleJournals(settings: Settings): Promise<JournalNotes> {
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
    // The running process delivers. Only its journal shows the progress.
    await delay(POLL_EVERY_MS);
    const before = waitingIn(journals);
    journals = await inspectJournals(folder);
    if (waitingIn(journals) < before) end = Date.now() + WAIT_MS;
  }
  const aside = await asideFiles(folder);
  const broken = journals.filter(isBrokenJournal);
  const look = 'run palimpsest journal salvage';
  const waiting = journals.filter(isWaiting);
  return {
    waitingSteps: () => waitingSteps(folder, waiting),
    notes: [
      ...notes,
      ...waiting.map(waitingNote),
      ...broken.map(({ owner }) => `the journal ${owner} is damaged, so acknowledged steps may be lost; ${look}`),
      ...aside.map(
        ({ path }) =>
          `${path} was damaged before its delivery was complete, so acknowledged steps may be lost; ${look}`,
      ),
    ],
    isWhole: broken.length + aside.length === 0,
    isSettled: waiting.length === 0,
  };
}
