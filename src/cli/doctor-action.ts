import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type InspectedJournal, inspectJournals, type JournalState } from '../journal/journals.js';
import { type LockOwner, sessionLockOwners } from '../lease/session-lock.js';
import { type NodeStatusReport, nodeStatus } from '../node/node-status.js';
import { remoteFolders } from '../process/data-folder.js';
import { type LoopTrouble, loopTroubles, type TrackerReport, trackerReports } from '../process/process-reports.js';
import type { DoctorFlags } from './doctor-flags.js';
import { escapedJson, escapedLine } from './escape-text.js';
import { reportFailure } from './report-failure.js';
import { readSettings } from './settings.js';
import { UsageError } from './usage-error.js';

const STATE_LINES: Readonly<Record<JournalState, (journal: InspectedJournal) => string | undefined>> = {
  sound: ({ holder, pending }) =>
    holder === undefined && pending > 0 ? 'its process has ended; the next one that uses this data folder delivers it' : undefined,
  torn: () => 'the end of its last write is missing; what was acknowledged is whole and will be delivered',
  corrupt: ({ damage }) =>
    `DAMAGED: ${damage.map(({ file, offset, readableBefore, readableAfter }) => `${file} at byte ${offset}, ${readableBefore} records before it and ${readableAfter} after it can be read`).join('; ')}. Keep a copy of the file before anything else`,
  'newer-format': ({ reason }) => `written by a later version: ${reason}`,
  unreadable: ({ reason }) => `cannot be read: ${reason}`,
};
const NEEDS_A_HAND: ReadonlySet<JournalState> = new Set(['corrupt', 'newer-format', 'unreadable']);

function nodeLines(node: NodeStatusReport): readonly string[] {
  if (!node.running) return [`node      not running${node.failure === null ? '' : `; the last start failed: ${node.failure.message}`}`];
  const state = node.ingesterFailed ? 'HAS STOPPED INDEXING: stop and start it' : node.answers ? 'answers' : 'does not answer';
  const watched = node.supervised ? '' : '; NOT SUPERVISED, it will not be started again after a crash';
  return [`node      ${node.profile}, ${node.phase}, ${state}${watched} (${node.users} processes use it, ${node.restarts} restarts)`];
}

function journalLines(journals: readonly InspectedJournal[], now: number): readonly string[] {
  if (journals.length === 0) return ['journal   nothing waits for the database'];
  return journals.flatMap((journal) => {
    const { owner, holder, pending, pendingBytes, oldestAt, state } = journal;
    const who = holder === undefined ? 'of a process that ended' : `of process ${holder.pid}`;
    const age = oldestAt === undefined ? '' : `, the oldest for ${Math.max(0, Math.round((now - oldestAt) / 1_000))} s`;
    const line = STATE_LINES[state](journal);
    return [
      `journal   ${owner} ${who}: ${pending} steps wait (${pendingBytes} bytes${age})`,
      ...(line === undefined ? [] : [`          ${line}`]),
    ];
  });
}

function trackerLines(reports: readonly TrackerReport[]): readonly string[] {
  return reports.flatMap(({ pid, what, attached, orphaned, resuming, sweptFolders, unreadable }) => [
    `tracker   process ${pid} (${what}): ${attached} sources attached, ${orphaned} orphaned${resuming === 0 ? '' : `, ${resuming} sessions still resuming`}`,
    ...unreadable.map(({ path, reason }) => `          ${JSON.stringify(path)} cannot be read: ${reason}; its last version stays`),
    ...(sweptFolders === 0
      ? []
      : [
          `          ${sweptFolders} folders are looked at from time to time only; raise fs.inotify.max_user_watches or the limit of open files`,
        ]),
  ]);
}

/** What clients keep in one folder. */
interface Kept {
  readonly folder: string;
  readonly journals: readonly InspectedJournal[];
  readonly sessions: readonly LockOwner[];
  readonly trackers: readonly TrackerReport[];
}

async function keptIn(folder: string): Promise<Kept> {
  const [journals, sessions, trackers] = await Promise.all([inspectJournals(folder), sessionLockOwners(folder), trackerReports(folder)]);
  return { folder, journals, sessions, trackers };
}

/** The data folder, and those in it of nodes that someone else runs. */
async function keptBelow(dataDir: string): Promise<readonly [Kept, ...Kept[]]> {
  const remote = remoteFolders(dataDir);
  const names = await readdir(remote).catch(() => []);
  const [own, ...others] = await Promise.all([keptIn(dataDir), ...names.map((name) => keptIn(join(remote, name)))]);
  return [own, ...others];
}

function keptLines({ journals, sessions, trackers }: Kept, now: number): readonly string[] {
  const held = sessions.map(({ session, pid, what, since }) => `session   ${session} is open in process ${pid} (${what}) since ${since}`);
  return [...journalLines(journals, now), ...held, ...trackerLines(trackers)];
}

function loopLines(troubles: readonly LoopTrouble[]): readonly string[] {
  return troubles.map(
    ({ what, pid, session, passedThrough, at, reason }) =>
      `loop      ${what}, process ${pid}: ${passedThrough} model calls had the harness's own context, the last at ${at} in session ${session}: ${reason}`,
  );
}

/** `doctor` */
export async function doctorAction(flags: DoctorFlags): Promise<void> {
  await reportFailure(flags, async () => {
    const { dataDir } = readSettings(process.env, flags);
    const there = await stat(dataDir).catch(() => undefined);
    if (there?.isDirectory() === false) throw new UsageError(`${dataDir} is a file; name the data folder`);
    const [node, [own, ...others], loops] = await Promise.all([nodeStatus(dataDir), keptBelow(dataDir), loopTroubles(dataDir)]);
    const all = [own, ...others];
    const journals = all.flatMap((kept) => kept.journals);
    const sick = journals.some(({ state }) => NEEDS_A_HAND.has(state)) || (node.running && (node.ingesterFailed || !node.supervised));
    if (flags.json) {
      const [sessions, trackers] = [all.flatMap((kept) => kept.sessions), all.flatMap((kept) => kept.trackers)];
      console.log(escapedJson({ dataDir, healthy: !sick, node, journals, sessions, trackers, loops }));
    } else {
      const now = Date.now();
      const foreign = others.flatMap((kept) => [`remote    ${kept.folder}, for a node that someone else runs`, ...keptLines(kept, now)]);
      const lines = [`data      ${dataDir}`, ...nodeLines(node), ...keptLines(own, now), ...loopLines(loops), ...foreign];
      console.log(lines.map(escapedLine).join('\n'));
    }
    if (sick) process.exitCode = 1;
  });
}
