import { Command } from 'commander';
import type { InspectedFolder } from '../host/inspect-data-folder.js';
import type { InspectedJournal, JournalState } from '../journal/journals.js';
import type { NodeStatusReport } from '../node/node-status.js';
import type { LoopTrouble, TrackerReport } from '../process/process-reports.js';
import { dataFlag, jsonFlag } from './flags.js';
import { escapedJson, escapedLine, reportFailure } from './output.js';

/** Flags of `palimpsest doctor`, as commander hands them over. */
interface DoctorFlags {
  readonly data?: string;
  readonly json?: boolean;
}

const STATE_LINES: Readonly<Record<JournalState, (journal: InspectedJournal) => string | undefined>> = {
  sound: ({ holder, pending }) =>
    holder === undefined && pending > 0 ? 'its process has ended; the next one that uses this data folder delivers it' : undefined,
  torn: () => 'the end of its last write is missing; what was acknowledged is whole and will be delivered',
  corrupt: ({ damage }) =>
    `DAMAGED: ${damage.map(({ file, offset, readableBefore, readableAfter }) => `${file} at byte ${offset}, ${readableBefore} records before it and ${readableAfter} after it can be read`).join('; ')}. Keep a copy of the file before anything else`,
  'newer-format': ({ reason }) => `written by a later version: ${reason}`,
  unreadable: ({ reason }) => `cannot be read: ${reason}`,
};

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
      : [`          ${sweptFolders} folders are only checked now and then; raise fs.inotify.max_user_watches or the limit of open files`]),
  ]);
}

function folderLines({ journals, sessions, trackers }: InspectedFolder, now: number): readonly string[] {
  const open = sessions.map(({ session, pid, what, since }) => `session   ${session} is open in process ${pid} (${what}) since ${since}`);
  return [...journalLines(journals, now), ...open, ...trackerLines(trackers)];
}

function loopLines(troubles: readonly LoopTrouble[]): readonly string[] {
  return troubles.map(
    ({ what, pid, session, passedThrough, at, reason }) =>
      `loop      ${what}, process ${pid}: ${passedThrough} model calls had the harness's own context, the last at ${at} in session ${session}: ${reason}`,
  );
}

async function examine(flags: DoctorFlags): Promise<void> {
  const [{ inspectDataFolder }, { readSettings }] = await Promise.all([
    import('../host/inspect-data-folder.js'),
    import('../host/settings.js'),
  ]);
  const { dataDir } = readSettings(process.env, flags).node;
  const { node, own, remote, loops, healthy } = await inspectDataFolder(dataDir);
  if (flags.json) {
    const all = [own, ...remote];
    const [journals, sessions, trackers] = [
      all.flatMap((folder) => folder.journals),
      all.flatMap((folder) => folder.sessions),
      all.flatMap((folder) => folder.trackers),
    ];
    console.log(escapedJson({ dataDir, healthy, node, journals, sessions, trackers, loops }));
  } else {
    const now = Date.now();
    const foreign = remote.flatMap((folder) => [
      `remote    ${folder.path}, for a node that someone else runs`,
      ...folderLines(folder, now),
    ]);
    const lines = [`data      ${dataDir}`, ...nodeLines(node), ...folderLines(own, now), ...loopLines(loops), ...foreign];
    console.log(lines.map(escapedLine).join('\n'));
  }
  if (!healthy) process.exitCode = 1;
}

/** `palimpsest doctor`: shows what is waiting, open or broken in a data folder. Changes nothing. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description(
      'show what is waiting, open or broken in a data folder; changes nothing; exit code 1 when the node or a journal has to be repaired',
    )
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .action((flags: DoctorFlags) => reportFailure(flags, () => examine(flags)));
}
