import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type LeftSession, leftSessions } from '../client/recovery/left-sessions.js';
import { type DeliveryOptions, deliverJournals } from '../host/deliver-journals.js';
import { openStore } from '../host/open-store.js';
import { isDurable, type Settings } from '../host/settings.js';
import { copyJournal, writerOf } from '../journal/copy-journal.js';
import type { JournalWriter } from '../journal/journal-folder.js';
import { type InspectedJournal, inspectJournals } from '../journal/journals.js';
import { refusedText } from '../journal/refused-note.js';
import { describeSharedLog, readSharedLog } from '../node/shared-log.js';
import { clientFolder, remoteFolders } from '../process/data-folder.js';
import { namesIn } from '../process/owned-file.js';
import { ranHere } from '../process/process-identity.js';
import { unlessMissing } from '../process/system-error.js';
import { CodedError } from '../values/coded-error.js';

/**
 * Why journals of another host are not delivered here.
 * - `no-journals`: the folder holds none.
 * - `own-folder`: it is the folder in use here.
 * - `owner-lives`: their process runs on this host and delivers them itself.
 * - `other-database`: they belong to another database.
 * - `unreadable`: a later version wrote them, or they cannot be read.
 * - `damaged`: their start cannot be read, and the rest depends on it.
 * - `incomplete`: only a part was delivered.
 */
export type AdoptionErrorCode =
  | 'no-journals'
  | 'own-folder'
  | 'owner-lives'
  | 'other-database'
  | 'unreadable'
  | 'damaged'
  | 'incomplete';

/**
 * Thrown when journals of another host cannot be adopted. Nothing was changed, except with
 * `incomplete`.
 */
class AdoptionError extends CodedError<AdoptionErrorCode> {
  override readonly name = 'AdoptionError';
}

/** A journal in another host's folder. */
export interface LeftJournal extends InspectedJournal {
  /** The process that last wrote it; undefined if unknown. */
  readonly writer: JournalWriter | undefined;
  /** Whether this host knows that the writer has ended; false if it may run on another host. */
  readonly hasEnded: boolean;
}

/** The content of a folder's journals and the effect of a delivery. */
export interface AdoptionPlan {
  readonly folder: string;
  /** The shared log that the folder was used with, in words; undefined if unknown. */
  readonly usedWith: string | undefined;
  /** The destination of the delivery, in words. */
  readonly deliversTo: string;
  readonly journals: readonly LeftJournal[];
  readonly sessions: readonly LeftSession[];
}

/** Returns the number of undelivered records. */
export const undelivered = ({ sessions }: Pick<AdoptionPlan, 'sessions'>): number =>
  sessions.reduce((sum, { records, stored }) => sum + records - stored, 0);

async function journalsOf(folder: string): Promise<readonly LeftJournal[]> {
  return Promise.all(
    (await inspectJournals(folder)).map(async (journal) => {
      const writer = journal.holder ?? (await writerOf(folder, journal.owner));
      const hasEnded = journal.holder === undefined && writer !== undefined && (await ranHere(writer));
      return { ...journal, writer, hasEnded };
    }),
  );
}

/** Rejects a folder whose journals cannot belong to another host over this database. */
async function requireForeign(folder: string, settings: Settings): Promise<void> {
  const real = await unlessMissing(realpath(folder));
  if (real === undefined) throw new AdoptionError('no-journals', `the folder ${folder} does not exist`);
  const own = clientFolder(settings.node.dataDir, settings.nodeUrl);
  if (real === (await realpath(own).catch(() => own)))
    throw new AdoptionError(
      'own-folder',
      `${folder} is in use here: journals of dead processes in it are delivered automatically (palimpsest journal ` +
        'salvage shows damage)',
    );
  const names = await namesIn(folder);
  if (names.includes('golden')) {
    throw new AdoptionError(
      'other-database',
      `${folder} has its own database, which its journals belong to. Start it in place: palimpsest node start ` +
        `--data ${folder}`,
    );
  }
  if (!isDurable(settings))
    throw new AdoptionError(
      'other-database',
      'a database of profile memory loses everything delivered to it. Name another one with --data or XTDB_URL.',
    );
}

/** Describes the location of the settings' database, and whether other hosts may share it. */
async function targetOf({ node, nodeUrl }: Settings): Promise<{ readonly words: string; readonly isShared: boolean }> {
  if (nodeUrl !== undefined) return { words: nodeUrl, isShared: true };
  const log = node.log ?? (await readSharedLog(node.dataDir));
  return log === undefined
    ? { words: `the database of ${node.dataDir} alone`, isShared: false }
    : { words: describeSharedLog(log), isShared: true };
}

/**
 * Plans the delivery of the journals in another host's data folder. The folder may be a copy or a
 * read-only mount. Changes nothing; finds or starts the node first.
 * @throws {AdoptionError} every code except `incomplete`
 * @throws {NodeError} every code – the node cannot be started
 * @throws {XtdbError} every code – the database does not answer
 */
export async function planAdoption(folder: string, settings: Settings): Promise<AdoptionPlan> {
  await requireForeign(folder, settings);
  const journals = await journalsOf(folder);
  if (journals.length === 0) {
    const others = await namesIn(remoteFolders(folder));
    const there = others.map((name) => join(remoteFolders(folder), name)).join(', ');
    const hint =
      others.length === 0
        ? 'name the data folder of the other host'
        : `journals for remote nodes are in ${there}: name that folder`;
    throw new AdoptionError('no-journals', `no journal found in ${folder}; ${hint}`);
  }
  const usedWith = await readSharedLog(folder);
  const target = await targetOf(settings);
  if (usedWith !== undefined && !target.isShared) {
    throw new AdoptionError(
      'other-database',
      `${folder} was used with ${describeSharedLog(usedWith)}, but the destination is ${target.words}. Name a ` +
        'data folder ' +
        'over that log with --data, or a node over it with XTDB_URL.',
    );
  }
  const { store, close } = await openStore(settings, () => undefined);
  try {
    const sessions = await leftSessions(store, folder);
    const log = usedWith === undefined ? undefined : describeSharedLog(usedWith);
    return { folder, usedWith: log, deliversTo: target.words, journals, sessions };
  } finally {
    await close();
  }
}

/** Rejects a plan that must not be carried out. */
function requireDeliverable({ folder, journals, sessions, deliversTo }: AdoptionPlan): void {
  const living = journals.find(({ holder }) => holder !== undefined);
  if (living?.holder !== undefined)
    throw new AdoptionError(
      'owner-lives',
      `process ${living.holder.pid} of this host (${living.holder.what}) has the journal ${living.owner} of ` +
        `${folder} open ` +
        'and delivers it itself. End it first to adopt the journal.',
    );
  const unread = journals.find(({ state }) => state === 'newer-format' || state === 'unreadable');
  if (unread !== undefined)
    throw new AdoptionError(
      'unreadable',
      `the journal ${unread.owner} of ${folder} cannot be read: ${unread.reason ?? unread.state}`,
    );
  const unknown = sessions.filter(({ fate }) => fate === 'unknown').map(({ session }) => session);
  const damaged = journals.find(({ state }) => state === 'corrupt');
  if (unknown.length > 0 && damaged !== undefined)
    throw new AdoptionError(
      'damaged',
      `the journal ${damaged.owner} of ${folder} is damaged, and the steps of ${unknown.join(', ')} follow its ` +
        'unreadable ' +
        'part, so they cannot be adopted. Copy the whole data folder to this host and run palimpsest journal salvage ' +
        '--data COPY, which shows the loss; with --apply it delivers the rest',
    );
  if (unknown.length > 0)
    throw new AdoptionError(
      'other-database',
      `the steps of ${unknown.join(', ')} follow steps that ${deliversTo} does not have: the journals of ` +
        `${folder} belong to another database. Name that database with --data or XTDB_URL`,
    );
}

/**
 * How often to check whether another process of this data folder has delivered the adopted
 * journals, milliseconds.
 */
const LOOK_MS = 200;

/**
 * Delivers the journals of another host's data folder. Copies them to the settings' data folder,
 * where they are delivered like those of a dead process, once and in order. This also holds if the
 * call is repeated or killed, or if the original process delivers at the same time. Only reads the
 * other folder. Returns the state afterwards.
 * @throws {AdoptionError} every code; with `incomplete`, the next client of the settings' data
 *   folder delivers the rest, as does another call.
 * @throws {JournalError} unwritable, no-space, io, newer-format
 * @throws {SessionError} `node-unavailable`
 * @throws {NodeError} every code
 * @throws {XtdbError} every code
 */
export async function adoptJournals(
  folder: string,
  settings: Settings,
  options: DeliveryOptions,
): Promise<AdoptionPlan> {
  const plan = await planAdoption(folder, settings);
  requireDeliverable(plan);
  const to = clientFolder(settings.node.dataDir, settings.nodeUrl);
  let owners =
    undelivered(plan) === 0 ? [] : plan.journals.filter(({ pending }) => pending > 0).map(({ owner }) => owner);
  while (owners.length > 0) {
    const before: string[] = [];
    for (const owner of owners) if (!(await copyJournal(folder, owner, { to, what: options.what }))) before.push(owner);
    await deliverJournals(settings, options);
    await drained(to, { owners, folder, stuckMs: options.stuckMs });
    // A journal that was already here may be only the start of the original, if an earlier adoption
    // was killed. Copy it again after its delivery.
    owners = before;
  }
  return planAdoption(folder, settings);
}

/**
 * Waits until the copied journals are gone, which happens once the database has all their records.
 * The node's supervisor may deliver some of them.
 */
async function drained(
  to: string,
  {
    owners,
    folder,
    stuckMs,
  }: { readonly owners: readonly string[]; readonly folder: string; readonly stuckMs: number },
): Promise<void> {
  let last = Number.POSITIVE_INFINITY;
  for (let since = performance.now(); ; await delay(LOOK_MS)) {
    const here = (await inspectJournals(to)).filter(({ owner }) => owners.includes(owner));
    const left = here.reduce((sum, { pending }) => sum + pending, 0);
    if (left === 0) return;
    const refused = here.flatMap((one) => one.refused);
    if (refused.reduce((sum, { records }) => sum + records, 0) >= left)
      throw new AdoptionError(
        'incomplete',
        `the database refuses ${left} records of ${folder} for good; palimpsest doctor says what to do: ` +
          `${refused.map(refusedText).join('; ')}`,
      );
    if (left < last) since = performance.now();
    last = left;
    if (performance.now() - since > stuckMs)
      throw new AdoptionError(
        'incomplete',
        `${left} records of ${folder} are not in the database yet; run palimpsest doctor, then repeat this command`,
      );
  }
}
