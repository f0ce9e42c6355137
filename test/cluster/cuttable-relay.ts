import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a server that can be cut: then nothing passes, nobody is told, and what waits passes when it is mended, as over a network whose cable was pulled. */
export interface CuttableRelay {
  readonly port: number;
  cut(): void;
  mend(): void;
  close(): void;
}

/** Starts a relay to a port of this machine. */
export async function cuttableRelay(to: number): Promise<CuttableRelay> {
  const sockets = new Set<Socket>();
  const waiting: Socket[] = [];
  let isCut = false;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  };
  const join = (client: Socket): void => {
    const server = connect(to, '127.0.0.1');
    keep(server);
    for (const [from, other] of [
      [client, server],
      [server, client],
    ] as const) {
      from.on('data', (piece) => {
        if (!other.write(piece)) from.pause();
      });
      other.on('drain', () => {
        if (!isCut) from.resume();
      });
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
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.pause();
    },
    mend: () => {
      isCut = false;
      for (const client of waiting.splice(0)) if (!client.destroyed) join(client);
      for (const socket of sockets) socket.resume();
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
