import { rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { testAddress } from './context.js';

/** A road to the suite's node that can be closed and opened: what an outage is to a client. */
export class Road {
  readonly socketPath: string;
  #server: Server | undefined;
  readonly #sockets = new Set<{ destroy(): void }>();

  constructor(folder: string) {
    this.socketPath = join(folder, 'road.sock');
  }

  /** Opens the road; nothing happens when it is open. */
  async open(): Promise<void> {
    if (this.#server !== undefined) return;
    const address = testAddress();
    const target = address.kind === 'unix' ? address.socketPath : '';
    this.#server = createServer((from) => {
      const to = connect(target);
      for (const socket of [from, to]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
      }
      from.pipe(to).pipe(from);
    });
    await new Promise<void>((resolve) => this.#server?.listen(this.socketPath, resolve));
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
    await rm(this.socketPath, { force: true });
  }
}
