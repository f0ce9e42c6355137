import { join } from 'node:path';
import { filesystemId, type SessionId, sessionId } from '../../src/objects/ids.js';
import type { Line } from '../chaos/acknowledged.js';
import type { Place } from '../chaos/check-everything.js';
import { missingSteps } from '../chaos/check-resume.js';
import { Service } from '../chaos/service.js';
import { type CuttableRelay, cuttableRelay } from './cuttable-relay.js';

/** The folder of a client's files, and the program that it runs. */
interface ChaosClientPlace {
  readonly folder: string;
  readonly script: string;
  readonly seed: number;
}

/**
 * A request to a node that is held: before the node gets it, or before the client gets the answer.
 */
export interface Caught {
  readonly client: ChaosClient;
  /** The index of its node. */
  readonly node: number;
  release(): void;
}

/**
 * Maximum time to open a session while nodes and servers come and go, in milliseconds. Cuts of half
 * a minute may follow each other.
 */
const OPEN_MS = 300_000;

/**
 * One host's client: a process with two sessions, its data folder and files, and a relay to each
 * node.
 */
export class ChaosClient {
  readonly name: string;
  readonly sessions: readonly SessionId[];
  readonly said: Line[] = [];
  readonly #place: ChaosClientPlace;
  readonly #since: Record<string, number> = {};
  #relays: readonly CuttableRelay[] = [];
  #unchecked: readonly Line[] = [];
  #incarnation = 0;
  #service: Service | undefined;

  constructor(name: string, place: ChaosClientPlace) {
    this.name = name;
    this.#place = place;
    this.sessions = ['x', 'y'].map((which) => sessionId(`chaos-${name}-${which}`));
  }

  get root(): string {
    return join(this.#place.folder, `files-${this.name}`);
  }

  /** The place of its files, for checks of its acknowledgements through the given nodes. */
  place(nodeUrl: string): Place {
    return {
      dataDir: join(this.#place.folder, `data-${this.name}`),
      root: this.root,
      filesystemId: filesystemId(`fs-${this.name}`),
      nodeUrl,
    };
  }

  /** Makes the connections to the nodes. The client begins with the node that is named first. */
  async reach(sockets: readonly string[]): Promise<void> {
    this.#relays = await Promise.all(sockets.map((socket) => cuttableRelay(socket)));
  }

  get isCut(): boolean {
    return this.#relays.some((relay) => relay.isCut);
  }

  /** Cuts it off from all nodes. */
  cut(): void {
    for (const relay of this.#relays) relay.cut();
  }

  mend(): void {
    for (const relay of this.#relays) relay.mend();
  }

  /**
   * Holds its next request of a kind to any node, on the way there or back. Undefined if the signal
   * fires before a request.
   */
  async hold(first: RegExp, what: 'request' | 'answer', signal: AbortSignal): Promise<Caught | undefined> {
    const holds = this.#relays.map((relay) => relay.hold(first, what));
    return new Promise((resolve) => {
      let isOver = false;
      const end = (caught?: Caught): void => {
        isOver = true;
        for (const hold of holds) hold.cancel();
        resolve(caught);
      };
      holds.forEach(({ caught }, node) => {
        void caught.then((release) => (isOver ? release() : end({ client: this, node, release })));
      });
      signal.addEventListener('abort', () => end(), { once: true });
    });
  }

  start(finish = false): void {
    this.#incarnation += 1;
    const nodeUrl = this.#relays.map(({ port }) => `http://127.0.0.1:${port}`).join(',');
    this.#service = new Service(this.#place.script, {
      ...this.place(nodeUrl),
      sessions: this.sessions,
      since: this.#since,
      linesFile: join(this.#place.folder, `${this.name}-${this.#incarnation}.jsonl`),
      seed: (this.#place.seed % 1_000_003) * 101 + this.#incarnation,
      openLimitMs: OPEN_MS,
      pauseMs: 30,
      finish,
    });
  }

  async opened(): Promise<void> {
    await this.#service?.opened(OPEN_MS);
  }

  kill(): void {
    this.#service?.kill();
  }

  /**
   * Collects the acknowledgements of a process. Returns problems: lines of its predecessors that it
   * did not find.
   */
  async end(expected: 'killed' | 'finished'): Promise<readonly string[]> {
    const problems: string[] = [];
    const { lines = [], code = null, stderr = '' } = (await this.#service?.end()) ?? {};
    this.#service = undefined;
    for (const line of lines) {
      if (line.kind === 'refused') problems.push(`client ${this.name}: ${line.what}: ${line.error}`);
      if (line.kind !== 'resumed') continue;
      for (const found of line.found) {
        problems.push(...missingSteps(found, this.#unchecked));
        this.#since[found.session] = found.seq;
        this.#unchecked = this.#unchecked.filter((said) => !('session' in said) || said.session !== found.session);
      }
    }
    this.said.push(...lines);
    this.#unchecked = [...this.#unchecked, ...lines];
    if (code !== (expected === 'finished' ? 0 : null))
      problems.push(`client ${this.name} ended with ${code}: ${stderr.slice(-2_000)}`);
    return problems;
  }

  close(): void {
    this.kill();
    this.mend();
    for (const relay of this.#relays) relay.close();
  }
}
