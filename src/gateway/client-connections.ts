import { type ClientRequest, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';

/** A pool for the connections that one client connection has to one upstream. */
export type Pool = HttpAgent | HttpsAgent;

function poolFor(base: URL): Pool {
  // Node reads the proxy variables since 24.5. Earlier versions ignore the option.
  const options = { keepAlive: true, maxSockets: 1, proxyEnv: process.env } as const;
  return base.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
}

/** A client's connection with its connections to upstreams. */
export class ClientConnection {
  readonly #socket: Socket;
  readonly #pools = new Map<string, Pool>();
  readonly #followed = new WeakSet<Socket>();
  #running = 0;
  #isEnding = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    // A client may reset its connection. That is no failure of the gateway.
    socket.on('error', () => undefined);
  }

  /** Begins an exchange. Returns the pool for its upstream. */
  begin(base: URL): Pool {
    this.#running += 1;
    const pool = this.#pools.get(base.origin) ?? poolFor(base);
    this.#pools.set(base.origin, pool);
    return pool;
  }

  /** If the upstream closed the connection of a request, ends this connection once it is idle. */
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
 * Gives each connection of a client its own connections to the upstreams. When the upstream ends an
 * idle connection, the client's connection ends too, as without the gateway. A shared pool could
 * send a request over a connection that the upstream is just closing.
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

  /** Ends all connections. The server does not track connections that became WebSockets. */
  close(): void {
    for (const [socket, connection] of this.#connections) {
      connection.close();
      socket.destroy();
    }
    this.#connections.clear();
  }
}
