import { once } from 'node:events';
import { type IncomingMessage, request, Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy over several nodes that sends each request to the chosen one. */
export interface NodesProxy {
  readonly url: string;
  /** The number of requests that each node got. */
  readonly counts: readonly number[];
  close(): void;
}

/** How a proxy chooses a node. */
interface ProxyOptions {
  /** Returns the index of the node for the next request. */
  readonly choose: () => number;
  /** A socket on which it also listens, beside a port of the loopback address. */
  readonly socketPath?: string;
}

/** Starts a proxy over the nodes that listen on these sockets. */
export async function nodesProxy(
  sockets: readonly string[],
  { choose, socketPath }: ProxyOptions,
): Promise<NodesProxy> {
  const counts = sockets.map(() => 0);
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const at = choose();
    counts[at] = (counts[at] ?? 0) + 1;
    const headers = { ...incoming.headers, host: 'localhost' };
    const passed = request(
      { socketPath: sockets[at], method: incoming.method, path: incoming.url, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('error', () => outgoing.destroy()).pipe(outgoing);
      },
    );
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  };
  const [server, other] = [new Server(pass), new Server(pass)];
  await once(server.listen(0, '127.0.0.1'), 'listening');
  if (socketPath !== undefined) await once(other.listen(socketPath), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    close: () => {
      for (const one of [server, other]) {
        one.close();
        one.closeAllConnections();
      }
    },
  };
}

/** Returns a function that chooses a random node of `count`. */
export const anyOf = (count: number) => (): number => Math.floor(Math.random() * count);

/** Returns a function that chooses the `count` nodes in turn. */
export function inTurn(count: number): () => number {
  let turn = 0;
  return () => {
    turn = (turn + 1) % count;
    return turn;
  };
}
