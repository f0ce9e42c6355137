import { dataFolderAt } from '../../src/node/data-folder.js';
import { type NodeState, readState } from '../../src/node/node-state.js';
import { isAlive, type ProcessIdentity } from '../../src/process/process-identity.js';
import type { Random } from './random.js';

/** Whom a kill hits. */
export type Victim = 'service' | 'jvm' | 'supervisor';

/** The ways to die together. */
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

/** A supervisor waits longer after each crash in a row; from the third on it is killed too, so that a run stays short. */
const CRASHES_IN_A_ROW = 3;
const CALMED: Readonly<Partial<Record<KillKind, KillKind>>> = { jvm: 'supervisor+jvm', 'service+jvm': 'all' };

/** Who was killed at one moment. */
export interface Kill {
  readonly kind: KillKind;
  readonly killed: readonly Victim[];
}

/** What the node's state file says. */
export const nodeState = (dataDir: string): Promise<NodeState | undefined> =>
  readState(dataFolderAt(dataDir).stateFile);

async function kill(identity: ProcessIdentity | null | undefined): Promise<boolean> {
  if (identity === null || identity === undefined || !(await isAlive(identity))) return false;
  process.kill(identity.pid, 'SIGKILL');
  return true;
}

/** Chooses whom to kill next. */
export function chooseKill(random: Random, crashesInARow: number): KillKind {
  const kind = random.weighted(WEIGHTS);
  return crashesInARow >= CRASHES_IN_A_ROW ? (CALMED[kind] ?? kind) : kind;
}

/** Kills, all at one moment as far as that goes. A node that is just not running cannot be killed. */
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
