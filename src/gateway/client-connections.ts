import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';

/** A pool of connections to one upstream for one connection of a client. */
export type Pool = HttpAgent | HttpsAgent;

function poolFor(base: URL): Pool {
  // Node 24.5 and later honour the variables for proxies; earlier ones ignore the option.
  const options = { keepAlive: true, maxSockets: 1, proxyEnv: process.env } as const;
  return base.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
}

/** A client's connection with the connections to upstreams that belong to it. */
export class ClientConnection {
  readonly #socket: Socket;
  readonly #pools = new Map<string, Pool>();
  readonly #followed = new WeakSet<Socket>();
  #running = 0;
  #isEnding = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    // A client that resets its connection is not a failure of the gateway.
    socket.on('error', () => undefined);
  }

  /** Begins an exchange. Returns the pool for its upstream. */
  begin(base: URL): Pool {
    this.#running += 1;
    const pool = this.#pools.get(base.origin) ?? poolFor(base);
    this.#pools.set(base.origin, pool);
    return pool;
  }

  /** Ends this connection once the connection of a request to its upstream has ended. */
  follow(request: ClientRequest): void {
    request.once('socket', (socket) => {
      if (this.#followed.has(socket)) return;
      this.#followed.add(socket);
      socket.once('close', () => {
        this.#isEnding = true;
        this.#endIfIdle();
      });
    });
  }

  /** Ends an exchange. */
  end(): void {
    this.#running -= 1;
    this.#endIfIdle();
  }

  /** Ends the connections to upstreams. */
  close(): void {
    for (const pool of this.#pools.values()) pool.destroy();
    this.#pools.clear();
  }

  #endIfIdle(): void {
    if (this.#isEnding && this.#running === 0) this.#socket.end();
  }
}

/**
 * Pairs each connection of a client with connections of its own to the upstream. The client then
 * sees an idle connection end when the upstream ends it, as without the gateway. A shared pool
 * would hand a request to a connection that the upstream is just closing.
 */
export class ClientConnections {
  readonly #connections = new Map<Socket, ClientConnection>();

  /** Returns a client's connection. */
  of(socket: Socket): ClientConnection {
    const known = this.#connections.get(socket);
    if (known !== undefined) return known;
    const connection = new ClientConnection(socket);
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      connection.close();
      this.#connections.delete(socket);
    });
    return connection;
  }

  /** Ends all connections, also those that became WebSockets, which the server does not know. */
  close(): void {
    for (const [socket, connection] of this.#connections) {
      connection.close();
      socket.destroy();
    }
    this.#connections.clear();
  }
}
