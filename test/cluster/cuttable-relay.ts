import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net';

/** A message that a relay holds. */
export interface Held {
  /** Resolves once the message is held. The result is a function that releases it. */
  readonly caught: Promise<() => void>;
  /** Stops waiting for the message; does nothing if it is held already. */
  cancel(): void;
}

/**
 * A connection to a server that can be cut, like a network whose cable is unplugged. While it is
 * cut, nothing passes and neither end notices. Pending data passes once the connection is restored.
 */
export interface CuttableRelay {
  readonly port: number;
  readonly isCut: boolean;
  cut(): void;
  mend(): void;
  /**
   * Holds the next request with matching first bytes before the server gets it, or its answer
   * before the client does.
   */
  hold(first: RegExp, what: 'request' | 'answer'): Held;
  close(): void;
}

interface Hold {
  readonly first: RegExp;
  readonly what: 'request' | 'answer';
  onCaught(release: () => void): void;
}

/** Starts a relay to a port of this machine, or to a socket. */
export async function cuttableRelay(to: number | string): Promise<CuttableRelay> {
  const target: NetConnectOpts = typeof to === 'string' ? { path: to } : { host: '127.0.0.1', port: to };
  const sockets = new Set<Socket>();
  const waiting: Socket[] = [];
  const holds = new Set<Hold>();
  let isCut = false;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  };
  const resume = (socket: Socket): void => {
    if (!isCut) socket.resume();
  };
  const holdOf = (piece: Buffer): Hold | undefined => {
    if (holds.size === 0) return undefined;
    const text = piece.subarray(0, 2_000).toString('latin1');
    const found = [...holds].find(({ first }) => first.test(text));
    if (found !== undefined) holds.delete(found);
    return found;
  };
  const join = (client: Socket): void => {
    const server = connect(target);
    keep(server);
    const pass = (from: Socket, other: Socket, piece: Buffer): void => {
      if (!other.write(piece)) from.pause();
    };
    client.on('data', (piece) => {
      const hold = holdOf(piece);
      if (hold === undefined) return pass(client, server, piece);
      if (hold.what === 'answer') {
        pass(client, server, piece);
        server.pause();
        return hold.onCaught(() => resume(server));
      }
      client.pause();
      hold.onCaught(() => {
        resume(client);
        if (!server.destroyed) pass(client, server, piece);
      });
    });
    server.on('data', (piece) => pass(server, client, piece));
    for (const [from, other] of [
      [client, server],
      [server, client],
    ] as const) {
      other.on('drain', () => resume(from));
      from.on('error', () => other.destroy());
      from.on('close', () => other.destroy());
    }
    if (isCut) server.pause();
  };
  const server = createServer((client) => {
    keep(client);
    client.on('error', () => undefined);
    if (!isCut) return join(client);
    client.pause();
    waiting.push(client);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get isCut() {
      return isCut;
    },
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.pause();
    },
    mend: () => {
      isCut = false;
      for (const client of waiting.splice(0)) if (!client.destroyed) join(client);
      for (const socket of sockets) socket.resume();
    },
    hold: (first, what) => {
      let hold: Hold | undefined;
      const caught = new Promise<() => void>((onCaught) => {
        hold = { first, what, onCaught };
        holds.add(hold);
      });
      return { caught, cancel: () => void (hold !== undefined && holds.delete(hold)) };
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
