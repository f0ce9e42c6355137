import { dataFolderAt } from '../../src/node/data-folder.js';
import { type NodeState, readState } from '../../src/node/node-state.js';
import { isAlive, type ProcessIdentity } from '../../src/process/process-identity.js';
import type { Random } from './random.js';

/** The target of a kill. */
export type Victim = 'service' | 'jvm' | 'supervisor';

/** The groups of targets that die together. */
export type KillKind = 'service' | 'jvm' | 'supervisor' | 'supervisor+jvm' | 'service+jvm' | 'all';

const VICTIMS: Readonly<Record<KillKind, readonly Victim[]>> = {
  service: ['service'],
  jvm: ['jvm'],
  supervisor: ['supervisor'],
  'supervisor+jvm': ['supervisor', 'jvm'],
  'service+jvm': ['service', 'jvm'],
  all: ['service', 'supervisor', 'jvm'],
};

const WEIGHTS: Readonly<Record<KillKind, number>> = {
  service: 54,
  jvm: 12,
  supervisor: 3,
  'supervisor+jvm': 10,
  'service+jvm': 13,
  all: 8,
};

/**
 * A supervisor waits longer after each consecutive crash. To keep runs short, it is killed too from
 * the third crash.
 */
const CRASHES_IN_A_ROW = 3;
const CALMED: Readonly<Partial<Record<KillKind, KillKind>>> = { jvm: 'supervisor+jvm', 'service+jvm': 'all' };

/** The processes killed at one moment. */
export interface Kill {
  readonly kind: KillKind;
  readonly killed: readonly Victim[];
}

/** Returns the content of the node's state file. */
export const nodeState = (dataDir: string): Promise<NodeState | undefined> =>
  readState(dataFolderAt(dataDir).stateFile);

async function kill(identity: ProcessIdentity | null | undefined): Promise<boolean> {
  if (identity === null || identity === undefined || !(await isAlive(identity))) return false;
  process.kill(identity.pid, 'SIGKILL');
  return true;
}

/** Chooses the next targets. */
export function chooseKill(random: Random, crashesInARow: number): KillKind {
  const kind = random.weighted(WEIGHTS);
  return crashesInARow >= CRASHES_IN_A_ROW ? (CALMED[kind] ?? kind) : kind;
}

/** Kills the targets as simultaneously as possible. A node that is not running is skipped. */
export async function killNow(dataDir: string, service: () => boolean, kind: KillKind): Promise<Kill> {
  const state = await nodeState(dataDir);
  const hit: Readonly<Record<Victim, () => boolean | Promise<boolean>>> = {
    service,
    jvm: () => kill(state?.jvm),
    supervisor: () => kill(state?.supervisor),
  };
  const killed: Victim[] = [];
  for (const victim of VICTIMS[kind]) if (await hit[victim]()) killed.push(victim);
  return { kind, killed };
}
