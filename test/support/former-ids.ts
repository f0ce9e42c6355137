import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { testAddress } from './context.js';
import { atSocket } from './xtdb.js';

/** Ids of parts in transactions, queries and parameters. */
const PART_ID = /((?:step|snapshot|assembly|chunks?)(?::|%3A)[^"&\\]*?)~(?="|&|$)/g;

/**
 * A proxy before the suite's node that removes the mark of data format 2 from part ids in every
 * request. A client that writes through it leaves the data of format 1.
 */
export class FormerIds {
  readonly #server = createServer((incoming, outgoing) => {
    this.#pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  readonly #socketPath: string;

  private constructor(folder: string) {
    this.#socketPath = join(folder, 'former.sock');
  }

  /** Listens on a socket in a folder. The caller closes it. */
  static async open(folder: string): Promise<FormerIds> {
    const proxy = new FormerIds(folder);
    proxy.#server.listen(proxy.#socketPath);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get address(): NodeAddress {
    return atSocket(this.#socketPath);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const target = testAddress();
    if (target.kind !== 'unix') throw new Error('the node behind the proxy must listen on a socket');
    const body = Buffer.from((await buffer(incoming)).toString('utf8').replaceAll(PART_ID, '$1'));
    const { method, url = '/', headers } = incoming;
    const { 'transfer-encoding': _chunked, ...others } = headers;
    const path = url.replaceAll(PART_ID, '$1');
    const passed = request({
      socketPath: target.socketPath,
      method,
      path,
      headers: { ...others, 'content-length': body.length },
    });
    const answered = once(passed, 'response') as Promise<[IncomingMessage]>;
    passed.end(body);
    const [answer] = await answered;
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    await pipeline(answer, outgoing);
  }
}
