import { messageOf } from '../values/thrown.js';
import { describeAddress, type NodeAddress } from './address.js';
import { XtdbError } from './errors.js';
import { XtdbHttp } from './http.js';
import { type NodeStatus, readStatus } from './requests.js';

/**
 * The health of a node, from best to worst. `lagging`: far behind a log that it shares.
 * `restoring`: it builds its index and answers only status requests. `failed`: its indexer has
 * stopped and it answers stale data.
 */
export type NodeHealth = 'ready' | 'lagging' | 'restoring' | 'failed' | 'unreachable';

/** The health of usable nodes. Readers wait until a lagging node has the writes of others. */
const USABLE: readonly NodeHealth[] = ['ready', 'lagging'];
/**
 * Maximum steps of the log that a ready node may be behind. A busy log is always a few steps ahead
 * of every index.
 */
const MOST_BEHIND = 1_000;
/** Time limit of a health check in milliseconds. */
const PROBE_MS = 2_000;

/** Derives the health of a node from its status. */
export function healthOf({ ingesterFailed, behind = 0 }: NodeStatus): NodeHealth {
  if (ingesterFailed) return 'failed';
  return behind > MOST_BEHIND ? 'lagging' : 'ready';
}

/** Returns the health in words, with the reason if the node gives one. */
function wordsOf(health: NodeHealth, { ingesterError }: NodeStatus): string {
  if (health !== 'failed') return health;
  return `its indexer has stopped${ingesterError === undefined ? '' : ` (${ingesterError})`}`;
}

/** A node's health and its reason. */
export interface ProbedNode {
  readonly address: NodeAddress;
  readonly health: NodeHealth;
  /** The health in words; for an unreachable node or a stopped indexer, the reason. */
  readonly why: string;
  /** The node's own status; undefined if it reports none yet. */
  readonly status: NodeStatus | undefined;
}

/** Checks the health of a node; never rejects. */
export async function probeHealth(address: NodeAddress): Promise<ProbedNode> {
  const http = new XtdbHttp(address, {
    connections: 1,
    maxRequestBytes: 1_024,
    maxAnswerBytes: 1_048_576,
    isProbe: true,
  });
  try {
    const status = readStatus(
      await http.send({ method: 'GET', path: '/status', accept: 'application/edn', timeoutMs: PROBE_MS }),
    );
    const health = healthOf(status);
    return { address, health, why: wordsOf(health, status), status };
  } catch (error) {
    if (error instanceof XtdbError && error.code === 'busy')
      return { address, health: 'restoring', why: 'it builds its index', status: undefined };
    return { address, health: 'unreachable', why: messageOf(error), status: undefined };
  } finally {
    await http.close();
  }
}

/**
 * Several nodes over one log. One is used while it is healthy. Readers see no difference between
 * nodes, because each read waits for the newest transaction that its client has seen.
 */
export class NodeList {
  readonly #addresses: () => readonly NodeAddress[];
  readonly #check: ((node: ProbedNode) => void) | undefined;
  #current = 0;

  /**
   * `addresses` returns the addresses with their current tokens, always in the same order. `check`
   * throws if the chosen node must not be used.
   */
  constructor(addresses: () => readonly NodeAddress[], check?: (node: ProbedNode) => void) {
    this.#addresses = addresses;
    this.#check = check;
  }

  /**
   * Chooses the node for the next requests: the current one, or the next healthy one.
   * @throws {XtdbError} `unreachable` – no node is healthy; the message gives each reason. Also
   *   throws the errors of `check`
   */
  async choose(): Promise<NodeAddress> {
    const addresses = this.#addresses();
    const at = (i: number): number => (this.#current + i) % addresses.length;
    const [first, ...others] = addresses.flatMap((_, i) => addresses[at(i)] ?? []);
    if (first === undefined) throw new XtdbError('unreachable', 'No node is named.');
    // A single node needs no health check: the request itself shows whether it answers.
    if (others.length === 0 && this.#check === undefined) return first;
    const current = await probeHealth(first);
    if (current.health === 'ready' || others.length === 0) return this.#checked(current);
    const probed = [current, ...(await Promise.all(others.map(probeHealth)))];
    for (const health of USABLE) {
      const index = probed.findIndex((one) => one.health === health);
      const found = probed[index];
      if (found === undefined) continue;
      this.#current = at(index);
      return this.#checked(found);
    }
    const each = probed.map(({ address, why }) => `${describeAddress(address)}: ${why}`);
    throw new XtdbError('unreachable', `None of the ${probed.length} nodes can be used. ${each.join('; ')}`);
  }
  #checked(node: ProbedNode): NodeAddress {
    this.#check?.(node);
    return node.address;
  }
}
