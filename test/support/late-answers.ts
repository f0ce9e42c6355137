import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { testAddress } from './context.js';
import { moment } from './moment.js';
import { atSocket } from './xtdb.js';

/** A held answer about one transaction. */
export interface HeldAnswer {
  /** Resolves when the node has answered about the transaction. */
  readonly caught: Promise<void>;
  /** Resolves when the answer about a later transaction was passed on. */
  readonly overtaken: Promise<void>;
  release(): void;
}

/** The kinds of held answers: the outcome or the receipt of a transaction. */
const HELD = { outcome: '/_xtdb/tx-committed', receipt: '/_xtdb/submit-tx' } as const;

interface Hold {
  readonly path: string;
  txId: number | undefined;
  readonly released: Promise<void>;
  readonly onCaught: () => void;
  readonly onOvertaken: () => void;
}

/**
 * A proxy before a node, by default the suite's, that passes everything on. It can let later
 * answers overtake one answer about a transaction. It can also hold writes back, so that clients do
 * not see each other's.
 */
export class LateAnswers {
  readonly #server = createServer((incoming, outgoing) => {
    this.#pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  readonly #socketPath: string;
  readonly #target: NodeAddress;
  #hold: Hold | undefined;
  #writes: Promise<void> = Promise.resolve();
  #read: { ahead: number; readonly released: Promise<void>; readonly onCaught: () => void } | undefined;

  private constructor(folder: string, target: NodeAddress) {
    this.#socketPath = join(folder, 'late.sock');
    this.#target = target;
  }

  /** Listens on a socket in a folder. The caller closes it. */
  static async open(folder: string, target: NodeAddress = testAddress()): Promise<LateAnswers> {
    const proxy = new LateAnswers(folder, target);
    proxy.#server.listen(proxy.#socketPath);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get address(): NodeAddress {
    return atSocket(this.#socketPath);
  }

  /** Holds the answer about the next queried transaction, or the receipts of all submissions. */
  holdNext(what: keyof typeof HELD = 'outcome'): HeldAnswer {
    const [released, release] = moment();
    const [caught, onCaught] = moment();
    const [overtaken, onOvertaken] = moment();
    this.#hold = { path: HELD[what], txId: undefined, released, onCaught, onOvertaken };
    return { caught, overtaken, release };
  }

  /** Holds the answer to one query, after `after` others that are passed on. */
  holdRead(after: number): Omit<HeldAnswer, 'overtaken'> {
    const [released, release] = moment();
    const [caught, onCaught] = moment();
    this.#read = { ahead: after, released, onCaught };
    return { caught, release };
  }

  /** Holds submissions until the returned function is called. Everything else is passed on. */
  holdWrites(): () => void {
    const [released, release] = moment();
    this.#writes = released;
    return release;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    if (this.#target.kind !== 'unix') throw new Error('the node behind the proxy must listen on a socket');
    const url = new URL(incoming.url ?? '/', 'http://node');
    const hold = url.pathname === this.#hold?.path ? this.#hold : undefined;
    const txId = Number(url.searchParams.get('tx-id'));
    if (hold !== undefined) hold.txId ??= txId;
    if (url.pathname === HELD.receipt) await this.#writes;
    const { method, url: path, headers } = incoming;
    const passed = request({ socketPath: this.#target.socketPath, method, path, headers });
    const answered = once(passed, 'response') as Promise<[IncomingMessage]>;
    await Promise.all([pipeline(incoming, passed), answered]);
    const [answer] = await answered;
    if (url.pathname === '/_xtdb/query' && this.#read !== undefined && this.#read.ahead-- === 0) {
      this.#read.onCaught();
      await this.#read.released;
    }
    if (hold !== undefined && txId === hold.txId) {
      hold.onCaught();
      await hold.released;
    }
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    await pipeline(answer, outgoing);
    if (hold?.txId !== undefined && txId > hold.txId) hold.onOvertaken();
  }
}
