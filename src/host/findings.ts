import { stepsInForkText } from '../client/delivery/rescue-fork.js';
import type { JournalState } from '../journal/journals.js';
import type { RefusedRecords } from '../journal/refused-note.js';
import type { NodeError, NodeErrorCode } from '../node/errors.js';
import type { NodeStatusReport } from '../node/node-status.js';
import { describeAddress } from '../xtdb/address.js';
import type { NodeHealth, ProbedNode } from '../xtdb/node-list.js';
import type { InspectedDataFolder, InspectedFolder } from './inspect-data-folder.js';

/** What `palimpsest doctor` finds beside what keeps a node from starting. */
type OwnFindingCode =
  | 'documents-missing'
  | 'store-failed'
  | 'disk-full'
  | 'node-silent'
  | 'node-unsupervised'
  | 'log-behind'
  | 'remote-unreachable'
  | 'remote-restoring'
  | 'journal-damaged'
  | 'journal-newer'
  | 'journal-unreadable'
  | 'delivery-refused'
  | 'delivery-late'
  | 'steps-in-fork'
  | 'watches-exhausted'
  | 'loop-bypassed';

/** Everything that can be the matter with a data folder, its node and its log. Each has a heading of its name in docs/runbook.md. */
export type FindingCode = NodeErrorCode | OwnFindingCode;

/** What a finding means and what is done about it. */
interface Explained {
  /** `repair`: something does not work until somebody does something; `look`: it works, and gets worse or passes by itself. */
  readonly weight: 'repair' | 'look';
  readonly means: string;
  readonly next: string;
}

/** Every finding, explained. */
export const FINDINGS: Readonly<Record<FindingCode, Explained>> = {
  'documents-missing': {
    weight: 'repair',
    means: 'the log names documents that the database does not have, so the node cannot index any further',
    next: 'restore the documents from a backup that is no older than the log; no start of the node brings them back',
  },
  'ingester-failed': {
    weight: 'repair',
    means: 'the indexer has stopped: the node answers from what it has indexed, and takes no writes',
    next: 'its supervisor starts it again by itself; if it says so again at once, look at palimpsest node logs',
  },
  'store-failed': {
    weight: 'repair',
    means: 'the store has refused a write: the node answers, and takes no writes',
    next: 'make sure that its disk has room and works; then it is started again by itself',
  },
  'disk-full': {
    weight: 'repair',
    means: 'the disk of the data folder has less room than the node needs to be started again',
    next: 'free some space there; what was acknowledged meanwhile is delivered afterwards',
  },
  'no-space': {
    weight: 'repair',
    means: 'the last start found no space left',
    next: 'free some space on that disk, then start the node',
  },
  'node-silent': {
    weight: 'look',
    means: 'the node runs and does not answer within the time of a look',
    next: 'look again; if it stays so, palimpsest node logs says what it does, and node stop and start give another one',
  },
  'node-unsupervised': {
    weight: 'repair',
    means: 'nobody starts the node again after a crash: its supervisor was killed',
    next: 'palimpsest node stop, then palimpsest node start',
  },
  'log-unreachable': {
    weight: 'repair',
    means: 'the shared log does not answer: calls are acknowledged in journals, and delivered when it is back',
    next: 'start its server, or let this host through to it; a node that ran before tries again by itself',
  },
  'log-denied': {
    weight: 'repair',
    means: 'the server of the log does not let the node in: a wrong user or password, or a right that is missing',
    next: 'correct the password file or variable (for Kafka the properties file), or the rights of the user; then start the node',
  },
  'log-missing': {
    weight: 'repair',
    means: 'there is no such database or topic, or nothing says where the log is',
    next: 'make it (CREATE DATABASE, --create-topic), or correct its name; then start the node',
  },
  'log-unfit': {
    weight: 'repair',
    means: 'the server, topic or parameters are none that a log can be kept in',
    next: 'change what the message names; then start the node',
  },
  'log-mismatch': {
    weight: 'repair',
    means:
      'the index of this data folder, or the documents, were made from another log, or from what this one held before it was set back',
    next: 'name the log that the folder was used with, or another folder with --data; where the log was set back on purpose, remove the folder index: it is made again',
  },
  'log-behind': {
    weight: 'look',
    means: 'the index is more than 1,000 steps behind the log: what others wrote last is not there yet',
    next: 'wait, and look whether it comes nearer; if not, the node is too slow for the log: look at its processor, disk and heap',
  },
  'remote-unreachable': {
    weight: 'repair',
    means: 'a node that XTDB_URL names does not answer as one does',
    next: 'start it, let this host through to it, correct the address, or show it the right token (XTDB_TOKEN_FILE)',
  },
  'remote-restoring': {
    weight: 'look',
    means: 'a node that XTDB_URL names builds its index',
    next: 'wait; with several nodes named, clients use another one meanwhile',
  },
  'profile-mismatch': {
    weight: 'repair',
    means: 'the data folder is used with another profile or another log',
    next: 'leave out the flag, stop the node that runs there, or name another folder with --data',
  },
  'data-newer': {
    weight: 'repair',
    means: 'a later version wrote the folder or the log',
    next: 'use that version, or another folder',
  },
  'data-older': {
    weight: 'repair',
    means: 'an earlier version began the log, and this one does not go on with its format',
    next: 'use that version for as long as its nodes run, or begin a new log',
  },
  'data-corrupt': {
    weight: 'repair',
    means: 'what is in the data folder is damaged, or a part of it is gone',
    next: 'restore the folder from a backup; of a node over a shared log, remove the folder index alone',
  },
  'data-unwritable': {
    weight: 'repair',
    means: 'the data folder belongs to another user, or cannot be written',
    next: 'give yourself access to it, or name another folder with --data',
  },
  'no-java': {
    weight: 'repair',
    means: 'there is no Java',
    next: 'install a JDK of version 17 or later, or point JAVA_HOME at one',
  },
  'java-too-old': { weight: 'repair', means: 'the Java is too old', next: 'install a JDK of version 17 or later' },
  'no-maven': {
    weight: 'repair',
    means: 'the first start needs Maven, and there is none',
    next: 'install Apache Maven 3.6 or later',
  },
  'no-network': {
    weight: 'repair',
    means: 'the first start fetches libraries, and the network could not be used',
    next: 'check connection, proxy and the settings of Maven, then start the node',
  },
  'build-failed': {
    weight: 'repair',
    means: 'the node could not be built',
    next: 'do what the message says, then start the node',
  },
  'incomplete-package': {
    weight: 'repair',
    means: 'files of this program are missing',
    next: 'install the package again',
  },
  locked: {
    weight: 'look',
    means: 'another process has the database open',
    next: 'stop it, or name another folder with --data',
  },
  'start-failed': {
    weight: 'repair',
    means: 'the last start of the node failed',
    next: 'palimpsest node logs says more',
  },
  'out-of-memory': {
    weight: 'repair',
    means: 'the node ran out of memory while it started',
    next: 'free some memory, or give it more with palimpsest node start --heap',
  },
  'ready-timeout': {
    weight: 'look',
    means: 'the node was not ready in time; it may build its index',
    next: 'look again with palimpsest node status; wait longer with palimpsest node start --ready-timeout SECONDS',
  },
  'stop-failed': {
    weight: 'look',
    means: 'the node could not be stopped',
    next: 'try again, or end the processes that node status names',
  },
  aborted: { weight: 'look', means: 'whoever started the node last gave up waiting', next: 'start it again' },
  'journal-damaged': {
    weight: 'repair',
    means: 'a journal of acknowledged calls is damaged: what can be read of it is delivered, the rest is named',
    next: 'palimpsest journal salvage shows what is lost, and settles it',
  },
  'journal-newer': {
    weight: 'repair',
    means: 'a journal was written by a later version; this one leaves it alone',
    next: 'run the later version once on this data folder',
  },
  'journal-unreadable': {
    weight: 'repair',
    means: 'a journal cannot be read',
    next: 'check its owner and its disk; it is delivered then',
  },
  'delivery-refused': {
    weight: 'repair',
    means:
      'the database refuses acknowledged calls for good: they stay in a journal, in order, and nothing of them is lost',
    next: 'mend what the reason names; then open the session again, or end the process that has the journal: both try it again. Keep the data folder until then. Where nodes share a log, palimpsest journal adopt delivers a copy of it through another one',
  },
  'delivery-late': {
    weight: 'look',
    means: 'acknowledged calls have waited for the database for more than a minute',
    next: 'look at the other findings; without one, whether the node answers, and how far its index is behind the log',
  },
  'steps-in-fork': {
    weight: 'look',
    means:
      'another writer took a session over before all acknowledged steps of the former one were delivered: a fork has them, the session does not',
    next: 'palimpsest log FORK shows the steps; open the fork to go on from them. Nothing is lost',
  },
  'watches-exhausted': {
    weight: 'look',
    means: 'the system has no watch left for some folders: their files are only checked now and then',
    next: 'raise fs.inotify.max_user_watches, or the limit of open files',
  },
  'loop-bypassed': {
    weight: 'look',
    means: "model calls had the harness's own context, because ours was late or failed",
    next: 'the reason beside it says why. Palimpsest has not seen what these calls were sent; what was said in them is recorded with the next call that reaches it, and not at all where none does',
  },
};

/** One thing that is the matter. */
export interface Finding extends Explained {
  readonly code: FindingCode;
  /** Which one of several, or what exactly. */
  readonly detail: string | undefined;
}

/** Steps of the log from which on a node counts as lagging, as clients of several nodes judge it. */
const LAGGING_STEPS = 1_000;
const LATE_MS = 60_000;

const JOURNAL_FINDINGS: Readonly<Partial<Record<JournalState, FindingCode>>> = {
  corrupt: 'journal-damaged',
  'newer-format': 'journal-newer',
  unreadable: 'journal-unreadable',
};

const isKnown = (code: string): code is FindingCode => Object.hasOwn(FINDINGS, code);

/** What a node's reason for taking no more writes is, by its beginning. */
function codeOfReason(reason: string | undefined): FindingCode {
  if (reason?.startsWith('documents-missing:') === true) return 'documents-missing';
  return reason?.startsWith('store:') === true ? 'store-failed' : 'ingester-failed';
}

type Found = readonly [code: FindingCode, detail?: string | undefined];

function ofNode(node: NodeStatusReport, lacksDocuments: boolean): readonly Found[] {
  const full: readonly Found[] = node.isDiskFull
    ? [['disk-full', `at least ${Math.ceil(node.leastRoom / 1_048_576)} MiB must be free for ${node.dataDir}`]]
    : [];
  if (!node.running) {
    if (node.failure === null) return full;
    const { code, message } = node.failure;
    return [...full, [isKnown(code) ? code : 'start-failed', message]];
  }
  const { ingesterFailed, storeFailed, supervised, answers, phase, log, sharedLog, frontExit } = node;
  const ingesterError = node.ingesterError ?? undefined;
  const behind = (log?.submitted ?? -1) - (log?.completed ?? -1);
  // While it is started again its predecessor's reason stands: what brought that about is still there, or the next start will show that it has gone.
  const before = answers ? undefined : frontExit?.reason;
  const reason = ingesterError ?? before;
  const found: readonly (Found | false)[] = [
    (ingesterFailed || before !== undefined) && [lacksDocuments ? 'documents-missing' : codeOfReason(reason), reason],
    storeFailed && ['store-failed'],
    !supervised && ['node-unsupervised'],
    phase === 'ready' && !answers && ['node-silent'],
    log?.reachable === false && ['log-unreachable', sharedLog ?? undefined],
    log?.reachable === true && behind > LAGGING_STEPS && ['log-behind', `${behind} steps`],
  ];
  return [...full, ...found.filter((one) => one !== false)];
}

/** The own node's findings; of a node that does not run also what keeps it from being started, where its last start did not say so. */
function ofOwnNode(
  node: NodeStatusReport,
  { lacksDocuments, java }: { readonly lacksDocuments: boolean; readonly java: NodeError | undefined },
): readonly Found[] {
  const found = ofNode(node, lacksDocuments);
  if (java === undefined || node.running || found.some(([code]) => code === java.code)) return found;
  return [...found, [java.code, java.message]];
}

const REMOTE_FINDINGS: Readonly<Record<NodeHealth, FindingCode | undefined>> = {
  ready: undefined,
  lagging: 'log-behind',
  restoring: 'remote-restoring',
  failed: 'ingester-failed',
  unreachable: 'remote-unreachable',
};

function ofRemote({ address, health, why, status }: ProbedNode): readonly Found[] {
  const code = health === 'failed' ? codeOfReason(status?.ingesterError) : REMOTE_FINDINGS[health];
  return code === undefined ? [] : [[code, `${describeAddress(address)}: ${why}`]];
}

/** What of a session was refused for good, and why. */
export function refusedText({ session, steps, records, reason, at }: RefusedRecords): string {
  const what = steps === null ? '' : `, steps ${steps[0]} to ${steps[1]}`;
  return `session ${session}: ${records} records${what}; tried last at ${at}: ${reason}`;
}

function ofFolder({ journals, aside, trackers }: InspectedFolder, now: number): readonly Found[] {
  return [
    ...journals.flatMap(({ state, owner, reason }): readonly Found[] => {
      const code = JOURNAL_FINDINGS[state];
      return code === undefined ? [] : [[code, reason ?? owner]];
    }),
    ...aside.map(({ path }): Found => ['journal-damaged', path]),
    ...journals.flatMap(({ owner, refused }) =>
      refused.map((one): Found => ['delivery-refused', `${owner}: ${refusedText(one)}`]),
    ),
    ...journals.flatMap(({ owner, pending, oldestAt = now }): readonly Found[] =>
      now - oldestAt > LATE_MS
        ? [['delivery-late', `${owner}: ${pending} steps, the oldest for ${Math.round((now - oldestAt) / 1_000)} s`]]
        : [],
    ),
    ...trackers.flatMap(({ pid, sweptFolders }): readonly Found[] =>
      sweptFolders > 0 ? [['watches-exhausted', `process ${pid}, ${sweptFolders} folders`]] : [],
    ),
  ];
}

/** What is the matter with a data folder that was looked at, and with the nodes that clients use instead of its own (`asked`), what must be repaired first. `java`: why no Java was found that runs the node. */
export function findingsOf(
  folder: InspectedDataFolder,
  now: number,
  { asked = [], java }: { readonly asked?: readonly ProbedNode[]; readonly java?: NodeError | undefined } = {},
): readonly Finding[] {
  const { node, own, remote, loops, formatTrouble, lacksDocuments, forks = [] } = folder;
  const format: readonly Found[] =
    formatTrouble === null
      ? []
      : [[isKnown(formatTrouble.code) ? formatTrouble.code : 'data-corrupt', formatTrouble.message]];
  const forked = forks.map((one): Found => ['steps-in-fork', stepsInForkText(one)]);
  const loopsFound = loops.map(
    ({ what, session, reason }): Found => ['loop-bypassed', `${what} in session ${session}: ${reason}`],
  );
  const found = [
    ...format,
    ...asked.flatMap(ofRemote),
    // With XTDB_URL nobody starts the folder's own node: what its last start failed of keeps nobody from working.
    ...(asked.length > 0 && !node.running ? [] : ofOwnNode(node, { lacksDocuments, java })),
    ...[own, ...remote].flatMap((one) => ofFolder(one, now)),
    ...forked,
    ...loopsFound,
  ];
  const findings = found.map(([code, detail]): Finding => ({ code, detail, ...FINDINGS[code] }));
  return [
    ...findings.filter(({ weight }) => weight === 'repair'),
    ...findings.filter(({ weight }) => weight === 'look'),
  ];
}
