import type { AgentFindingCode } from '../agents/agent.js';
import type { NodeErrorCode } from '../node/errors.js';

/** Findings of `palimpsest doctor` beyond those that stop a node from starting. */
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
  | 'erasure-unfinished'
  | 'steps-in-fork'
  | 'watches-exhausted'
  | 'loop-bypassed'
  | 'gateway-missed'
  | 'gateway-passed'
  | AgentFindingCode;

/**
 * Every possible problem of a data folder, its node and its log. Each has a heading of its name in
 * docs/runbook.md.
 */
export type FindingCode = NodeErrorCode | OwnFindingCode;

/** The meaning of a finding and its remedy. */
export interface Explained {
  /**
   * `repair`: a function fails until a person acts. `look`: everything works, but may get worse or
   * recover by itself.
   */
  readonly weight: 'repair' | 'look';
  readonly means: string;
  readonly next: string;
}

/** Every finding, explained. */
export const FINDINGS: Readonly<Record<FindingCode, Explained>> = {
  'documents-missing': {
    weight: 'repair',
    means: 'the log names documents that the database does not have, so the node cannot index further',
    next: 'restore the documents from a backup that is at least as new as the log; restarting the node does not help',
  },
  'erasure-unfinished': {
    weight: 'look',
    means: 'an erasure was interrupted, so content that it names may still exist',
    next: 'the next start of the node resumes it; palimpsest erase --resume does so now, or says what it waits for',
  },
  'ingester-failed': {
    weight: 'repair',
    means: 'the indexer has stopped: the node answers from its current index, but accepts no writes',
    next: 'the supervisor restarts it; if it stops again at once, run palimpsest node logs',
  },
  'store-failed': {
    weight: 'repair',
    means: 'the store has refused a write: the node still answers, but accepts no writes',
    next: 'make sure that its disk has room and works; the node then restarts by itself',
  },
  'disk-full': {
    weight: 'repair',
    means: 'the disk of the data folder has too little room to restart the node',
    next: 'free some space there; acknowledged calls are delivered afterwards',
  },
  'no-space': {
    weight: 'repair',
    means: 'the last start failed because the disk was full',
    next: 'free some space on that disk, then start the node',
  },
  'node-silent': {
    weight: 'look',
    means: 'the node runs but does not answer in time',
    next:
      'run palimpsest doctor again; if the node still does not answer, palimpsest node logs shows what it does, ' +
      'and palimpsest node stop, then start, replaces it',
  },
  'node-unsupervised': {
    weight: 'repair',
    means: 'the node will not restart after a crash, because its supervisor was killed',
    next: 'run palimpsest node stop, then palimpsest node start',
  },
  'log-unreachable': {
    weight: 'repair',
    means: 'the shared log does not answer: calls are acknowledged in journals and delivered later',
    next: 'start its server, or give this host network access to it; a node that ran before retries by itself',
  },
  'log-denied': {
    weight: 'repair',
    means: "the log's server rejects the node: wrong user or password, or a missing right",
    next:
      "correct the password file or variable (for Kafka the properties file) or the user's rights; then " +
      'start the node',
  },
  'log-missing': {
    weight: 'repair',
    means: 'the database or topic does not exist, or no address of the log is set',
    next: 'create it (CREATE DATABASE, --create-topic) or correct its name; then start the node',
  },
  'log-unfit': {
    weight: 'repair',
    means: 'the server, topic or parameters cannot hold a log',
    next: 'correct the setting in the message; then start the node',
  },
  'log-mismatch': {
    weight: 'repair',
    means: 'the index of this data folder, or its documents, belong to another log, or to this log before it was reset',
    next:
      'name the log that the folder was used with, or another folder with --data; if the log was reset on ' +
      'purpose, ' +
      'remove the folder index, which the node rebuilds',
  },
  'log-behind': {
    weight: 'look',
    means: 'the index is more than 1,000 steps behind the log, so recent writes of others are missing',
    next:
      'wait and check whether the distance shrinks; if not, the node is too slow: check its processor, disk ' +
      'and heap',
  },
  'remote-unreachable': {
    weight: 'repair',
    means: 'a node that XTDB_URL names does not answer correctly',
    next: 'start it, give this host network access, correct the address, or set the right token (XTDB_TOKEN_FILE)',
  },
  'remote-restoring': {
    weight: 'look',
    means: 'a node that XTDB_URL names is building its index',
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
    means: 'an earlier version began the log in a format that this version does not write',
    next: 'use that version while its nodes run, or begin a new log',
  },
  'data-corrupt': {
    weight: 'repair',
    means: 'files in the data folder are damaged or missing',
    next: 'restore the folder from a backup; for a node over a shared log, only remove the folder index',
  },
  'data-unwritable': {
    weight: 'repair',
    means: 'the data folder belongs to another user, or is not writable',
    next: 'get access to it, or name another folder with --data',
  },
  'no-java': {
    weight: 'repair',
    means: 'Java is not installed',
    next: 'install JDK 17 or later, or point JAVA_HOME at one',
  },
  'java-too-old': { weight: 'repair', means: 'the Java version is too old', next: 'install JDK 17 or later' },
  'no-maven': {
    weight: 'repair',
    means: 'the first start needs Maven, which is not installed',
    next: 'install Apache Maven 3.6 or later',
  },
  'no-network': {
    weight: 'repair',
    means: 'the first start downloads libraries, and the network failed',
    next: 'check the network, the proxy and the Maven settings, then start the node',
  },
  'build-failed': {
    weight: 'repair',
    means: 'the node could not be built',
    next: 'follow the message, then start the node',
  },
  'incomplete-package': {
    weight: 'repair',
    means: 'files of this program are missing',
    next: 'reinstall the package',
  },
  locked: {
    weight: 'look',
    means: 'another process has the database open',
    next: 'stop it, or name another folder with --data',
  },
  'start-failed': {
    weight: 'repair',
    means: 'the last start of the node failed',
    next: 'run palimpsest node logs for details',
  },
  'out-of-memory': {
    weight: 'repair',
    means: 'the node ran out of memory during its start',
    next: 'free some memory, or give it more with palimpsest node start --heap',
  },
  'ready-timeout': {
    weight: 'look',
    means: 'the node was not ready in time; it may still be building its index',
    next: 'check again with palimpsest node status; wait longer with palimpsest node start --ready-timeout SECONDS',
  },
  'stop-failed': {
    weight: 'look',
    means: 'the node could not be stopped',
    next: 'try again, or end the processes that node status names',
  },
  aborted: { weight: 'look', means: 'the last start of the node was aborted', next: 'start it again' },
  'journal-damaged': {
    weight: 'repair',
    means: 'a journal of acknowledged calls is damaged: its readable records are delivered, the others are listed',
    next: 'palimpsest journal salvage shows the loss; with --apply it archives the damaged files',
  },
  'journal-newer': {
    weight: 'repair',
    means: 'a later version wrote this journal, and this version does not touch it',
    next: 'run the later version once on this data folder',
  },
  'journal-unreadable': {
    weight: 'repair',
    means: 'a journal cannot be read',
    next: 'check its owner and its disk; once it is readable, it is delivered',
  },
  'delivery-refused': {
    weight: 'repair',
    means: 'the database permanently refuses acknowledged calls: they stay in a journal, in order, and all survive',
    next:
      'fix the reason; then open the session again, or end the process that has the journal: both retry. ' +
      'Keep the data ' +
      'folder until then. If nodes share a log, palimpsest journal adopt can deliver a copy through another node',
  },
  'delivery-late': {
    weight: 'look',
    means: 'acknowledged calls have waited for the database for more than a minute',
    next:
      'check the other findings; without any, check whether the node answers and how far its index is behind ' +
      'the log',
  },
  'steps-in-fork': {
    weight: 'look',
    means: 'another writer took over a session before all its acknowledged steps were delivered: only a fork has them',
    next: 'palimpsest log FORK shows the steps; open the fork to continue from them. No step is lost',
  },
  'watches-exhausted': {
    weight: 'look',
    means: 'the system is out of watches for some folders: their files are only polled',
    next: 'raise fs.inotify.max_user_watches or the limit of open files',
  },
  'loop-bypassed': {
    weight: 'look',
    means: "model calls used the harness's own context, because ours was late or failed",
    next:
      'see the reason after this finding. Palimpsest did not see these requests. Their messages are recorded with ' +
      'the next call that reaches it, or never if there is none',
  },
  'gateway-missed': {
    weight: 'look',
    means: 'model calls passed the gateway without an entry in its log',
    next: 'see the reason after this finding, such as a full disk; the calls themselves were forwarded and answered',
  },
  'gateway-passed': {
    weight: 'look',
    means: 'model calls passed the gateway over a WebSocket, which it does not read: their contexts are not seen',
    next: 'start the agent with palimpsest run codex, which makes Codex use HTTP',
  },
  'agent-unreachable': {
    weight: 'repair',
    means: 'an agent is set up but does not reach the server, so it has no Palimpsest tools and nothing is recorded',
    next: 'run palimpsest setup for this agent again, then restart the agent',
  },
  'agent-waits': {
    weight: 'look',
    means: 'an agent is set up and waits for your consent before it starts the server',
    next: 'start the agent in this folder and answer its question',
  },
  'agent-settings': {
    weight: 'look',
    means: "an agent's settings cannot be read, so it may not start the server",
    next: 'correct the file at the line that the finding names',
  },
  'agent-hook-unreached': {
    weight: 'repair',
    means: "an agent's hook did not reach palimpsest watch, so the agent is recorded late and gets no notes",
    next: 'run palimpsest watch --background and follow its message; then use the agent once',
  },
  'agent-hook-silent': {
    weight: 'look',
    means: 'the settings of an agent have our hooks, but no event has arrived from them yet',
    next: 'use the agent once more; a first event only starts palimpsest watch',
  },
};
