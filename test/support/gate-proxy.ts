import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { testAddress } from './context.js';
import { atSocket } from './xtdb.js';

/**
 * A proxy before the suite's node that decides on each submission:
 *
 * - `pass`: passes it on
 * - a promise: passes it on once the promise resolves
 * - `drop`: passes it on and loses the answer
 * - `refuse`: does not pass it on
 * - `spoil`: passes on half of it, which the node refuses for good
 *
 * `LateAnswers` delays answers instead.
 */
export class GateProxy {
  onSubmit: (body: string, nth: number) => 'pass' | 'drop' | 'refuse' | 'spoil' | Promise<void> = () => 'pass';
  /** Called before a query is passed on. */
  onQuery: (body: string) => Promise<void> | undefined = () => undefined;
  /** Whether to cut off the answers of queries midway. */
  cutsAnswers = false;
  submits = 0;
  readonly #server = createServer((incoming, outgoing) => {
    this.#pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  readonly #path: string;

  constructor(folder: string, name = 'gate') {
    this.#path = join(folder, `${name}.sock`);
  }
  async open(): Promise<this> {
    this.#server.listen(this.#path);
    await once(this.#server, 'listening');
    return this;
  }
  get address(): NodeAddress {
    return atSocket(this.#path);
  }
  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const target = testAddress();
    if (target.kind !== 'unix') throw new Error('socket');
    const url = new URL(incoming.url ?? '/', 'http://node');
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    let [drop, sent] = [false, body];
    if (url.pathname === '/_xtdb/submit-tx') {
      const what = this.onSubmit(body.toString('utf8'), this.submits++);
      if (what === 'refuse') return void outgoing.destroy();
      if (what === 'drop') drop = true;
      else if (what === 'spoil') sent = body.subarray(0, body.length / 2);
      else if (what !== 'pass') await what;
    } else if (url.pathname === '/_xtdb/query') await this.onQuery(body.toString('utf8'));
    const { method, url: path, headers } = incoming;
    const passed = request({ socketPath: target.socketPath, method, path, headers });
    const answered = once(passed, 'response') as Promise<[IncomingMessage]>;
    if (sent !== body) passed.setHeader('content-length', sent.length);
    passed.end(sent);
    const [answer] = await answered;
    if (drop) {
      answer.resume();
      await once(answer, 'end');
      outgoing.destroy();
      return;
    }
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    if (this.cutsAnswers && url.pathname === '/_xtdb/query') {
      answer.resume();
      outgoing.write('[', () => outgoing.destroy());
      return;
    }
    await pipeline(answer, outgoing);
  }
}
