import { rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { testAddress } from './context.js';

/** A road to the suite's node that can be closed and opened: an outage for those who take it, while the node goes on serving everybody else. */
export class Road {
  readonly socketPath: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  get isOpen(): boolean {
    return this.#server !== undefined;
  }

  async open(): Promise<void> {
    if (this.#server !== undefined) return;
    const address = testAddress();
    if (address.kind !== 'unix') throw new Error(`the suite's node listens on a unix socket, not on ${address.kind}`);
    const server = createServer((from) => {
      const to = connect(address.socketPath);
      for (const socket of [from, to]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          from.destroy();
          to.destroy();
        });
      }
      from.pipe(to);
      to.pipe(from);
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.socketPath, resolve));
  }

  /** Idempotent. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    await rm(this.socketPath, { force: true });
  }
}
