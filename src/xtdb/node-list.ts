import { messageOf } from '../values/thrown.js';
import { describeAddress, type NodeAddress } from './address.js';
import { XtdbError } from './errors.js';
import { XtdbHttp } from './http.js';
import { type NodeStatus, readStatus } from './requests.js';

/**
 * How a node is, from best to worst: `ready`; `lagging`, far behind a log that it shares; `restoring`, it builds its index and answers nothing else yet;
 * `failed`, its indexer has stopped and it answers stale data; `unreachable`.
 */
export type NodeHealth = 'ready' | 'lagging' | 'restoring' | 'failed' | 'unreachable';

/** Those that may be asked: what is written through another node is waited for. */
const USABLE: readonly NodeHealth[] = ['ready', 'lagging'];
/** How many steps of the log a node may be behind and still count as ready; a busy log is a few ahead of every index. */
const MOST_BEHIND = 1_000;
/** How long a node may take to say how it is, milliseconds. */
const PROBE_MS = 2_000;

/** What the status of a node that answers says of its health. */
export function healthOf({ ingesterFailed, behind = 0 }: NodeStatus): NodeHealth {
  if (ingesterFailed) return 'failed';
  return behind > MOST_BEHIND ? 'lagging' : 'ready';
}

/** The health in words, with the reason where a node gives one. */
function wordsOf(health: NodeHealth, { ingesterError }: NodeStatus): string {
  if (health !== 'failed') return health;
  return `its indexer has stopped${ingesterError === undefined ? '' : ` (${ingesterError})`}`;
}

/** What a node was found to be, and why. */
export interface ProbedNode {
  readonly address: NodeAddress;
  readonly health: NodeHealth;
  /** The health in words; of a node that cannot be reached or has stopped indexing, the reason. */
  readonly why: string;
  /** What it says of itself; undefined where it says nothing yet. */
  readonly status: NodeStatus | undefined;
}

/** Asks a node how it is; never rejects. */
export async function probeHealth(address: NodeAddress): Promise<ProbedNode> {
  const http = new XtdbHttp(address, { connections: 1, maxRequestBytes: 1_024, maxAnswerBytes: 1_048_576, isProbe: true });
  try {
    const status = readStatus(await http.send({ method: 'GET', path: '/status', accept: 'application/edn', timeoutMs: PROBE_MS }));
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
 * Several nodes over one log, of which one is used for as long as it is well. Which of them answers makes no difference to a reader: whoever asks waits for the
 * newest transaction that it has seen.
 */
export class NodeList {
  readonly #addresses: () => readonly NodeAddress[];
  readonly #check: ((node: ProbedNode) => void) | undefined;
  #current = 0;

  /** `addresses` gives them with their token of now, always in the same order; `check` throws what speaks against the node that would be used. */
  constructor(addresses: () => readonly NodeAddress[], check?: (node: ProbedNode) => void) {
    this.#addresses = addresses;
    this.#check = check;
  }

  /**
   * The node to ask from now on: the one that was used, else the next that is well.
   * @throws {XtdbError} `unreachable` – none is; the message says of each why. And what the check throws
   */
  async choose(): Promise<NodeAddress> {
    const addresses = this.#addresses();
    const at = (i: number): number => (this.#current + i) % addresses.length;
    const [first, ...others] = addresses.flatMap((_, i) => addresses[at(i)] ?? []);
    if (first === undefined) throw new XtdbError('unreachable', 'No node is named.');
    // Where there is no choice the request itself finds out.
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
