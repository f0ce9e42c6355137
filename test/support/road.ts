import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type ListenOptions, type Server } from 'node:net';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { testAddress } from './context.js';
import { atSocket } from './xtdb.js';

/**
 * A connection to a node, by default the suite's, that can be closed and opened to simulate an
 * outage.
 */
export class Road {
  readonly socketPath: string;
  #listen: ListenOptions;
  #server: Server | undefined;
  readonly #sockets = new Set<{ destroy(): void }>();

  readonly #target: NodeAddress;

  /** Makes a connection that begins at a socket in a folder. */
  constructor(folder: string, target: NodeAddress = testAddress()) {
    this.#target = target;
    this.socketPath = join(folder, 'road.sock');
    this.#listen = { path: this.socketPath };
  }

  /**
   * Opens a connection that begins at a port of this machine. It simulates a remote node with a
   * known address and nothing else.
   */
  static async fromPort(folder: string): Promise<Road> {
    const road = new Road(folder);
    road.#listen = { host: '127.0.0.1', port: 0 };
    await road.open();
    return road;
  }

  /** The address of a connection from a socket. */
  get address(): NodeAddress {
    return atSocket(this.socketPath);
  }

  /** The address of a connection from a port. It is the same after every opening. */
  get url(): string {
    return `http://127.0.0.1:${this.#listen.port}`;
  }

  /** Delay of each request to the node, milliseconds. */
  delayMs = 0;

  get isOpen(): boolean {
    return this.#server !== undefined;
  }

  /** Opens the connection. Does nothing if it is open. */
  async open(): Promise<void> {
    if (this.#server !== undefined) return;
    const target = this.#target.kind === 'unix' ? this.#target.socketPath : '';
    this.#server = createServer((from) => {
      const to = connect(target);
      for (const socket of [from, to]) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
      }
      from.pipe(this.#delayed()).pipe(to).pipe(from);
    });
    this.#server.listen(this.#listen);
    await once(this.#server, 'listening');
    if (this.#listen.port !== undefined)
      this.#listen = { ...this.#listen, port: (this.#server.address() as AddressInfo).port };
  }

  #delayed(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        if (this.delayMs === 0) done(null, chunk);
        else setTimeout(done, this.delayMs, null, chunk);
      },
    });
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
    await rm(this.socketPath, { force: true });
  }
}
