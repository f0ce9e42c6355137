import { stepsInForkText } from '../client/recovery/rescue-fork.js';
import type { JournalState } from '../journal/journals.js';
import { refusedText } from '../journal/refused-note.js';
import type { NodeError } from '../node/errors.js';
import type { NodeStatusReport } from '../node/node-status.js';
import { describeAddress } from '../xtdb/address.js';
import type { NodeHealth, ProbedNode } from '../xtdb/node-list.js';
import { type Explained, FINDINGS, type FindingCode } from './explained-findings.js';
import type { InspectedDataFolder, InspectedFolder } from './inspect-data-folder.js';

/** One problem. */
export interface Finding extends Explained {
  readonly code: FindingCode;
  /** The affected item, or details. */
  readonly detail: string | undefined;
}

/**
 * Number of log steps from which a node counts as lagging. Clients of several nodes use the same
 * limit.
 */
const LAGGING_STEPS = 1_000;
const LATE_MS = 60_000;

const JOURNAL_FINDINGS: Readonly<Partial<Record<JournalState, FindingCode>>> = {
  corrupt: 'journal-damaged',
  'newer-format': 'journal-newer',
  unreadable: 'journal-unreadable',
};

const isKnown = (code: string): code is FindingCode => Object.hasOwn(FINDINGS, code);

/** Maps the start of a node's reason for rejecting writes to a finding. */
function codeOfReason(reason: string | undefined): FindingCode {
  if (reason?.startsWith('documents-missing:') === true) return 'documents-missing';
  return reason?.startsWith('store:') === true ? 'store-failed' : 'ingester-failed';
}

/** A finding and its details. */
export type Found = readonly [code: FindingCode, detail?: string | undefined];

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
  // During a restart the previous exit's reason still counts: its cause persists, or the next start
  // will show that it is gone.
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

/**
 * Returns the findings about the data folder's own node. If the node does not run, they include the
 * reasons that stop it from starting, unless its last start reported them.
 */
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

/**
 * Returns the problems of an inspected data folder and of the nodes that clients use instead of its
 * own (`asked`), repairs first. `java`: the reason why no suitable Java was found. `agents`: the
 * findings on agents.
 */
export function findingsOf(
  folder: InspectedDataFolder,
  now: number,
  {
    asked = [],
    java,
    agents = [],
  }: {
    readonly asked?: readonly ProbedNode[];
    readonly java?: NodeError | undefined;
    readonly agents?: readonly Found[];
  } = {},
): readonly Finding[] {
  const { node, own, remote, loops, gateways, formatTrouble, lacksDocuments, isErasing, forks = [] } = folder;
  const erasing: readonly Found[] = isErasing ? [['erasure-unfinished']] : [];
  const format: readonly Found[] =
    formatTrouble === null
      ? []
      : [[isKnown(formatTrouble.code) ? formatTrouble.code : 'data-corrupt', formatTrouble.message]];
  const forked = forks.map((one): Found => ['steps-in-fork', stepsInForkText(one)]);
  const loopsFound = loops.map(
    ({ what, session, reason }): Found => ['loop-bypassed', `${what} in session ${session}: ${reason}`],
  );
  const gatewaysFound = gateways.flatMap(({ pid, missed, passed, at, reason }): readonly Found[] => [
    ...(missed === 0
      ? []
      : [['gateway-missed', `process ${pid}: ${missed} model calls, the last at ${at}: ${reason}`] as const]),
    ...(passed === 0 ? [] : [['gateway-passed', `process ${pid}: ${passed} WebSockets, the last at ${at}`] as const]),
  ]);
  const found = [
    ...format,
    ...asked.flatMap(ofRemote),
    // With XTDB_URL clients never start the folder's own node, so its last start's failure does not
    // matter.
    ...(asked.length > 0 && !node.running ? [] : ofOwnNode(node, { lacksDocuments, java })),
    ...[own, ...remote].flatMap((one) => ofFolder(one, now)),
    ...erasing,
    ...forked,
    ...loopsFound,
    ...gatewaysFound,
    ...agents,
  ];
  const findings = found.map(([code, detail]): Finding => ({ code, detail, ...FINDINGS[code] }));
  return [
    ...findings.filter(({ weight }) => weight === 'repair'),
    ...findings.filter(({ weight }) => weight === 'look'),
  ];
}
