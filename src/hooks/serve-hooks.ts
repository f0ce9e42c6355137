import { access, chmod, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Surroundings } from '../agents/agent.js';
import { hookClient, watchSocket, writeStart } from '../agents/hooks/hook-folder.js';
import { installHookClient } from '../agents/hooks/install-client.js';
import { messageOf } from '../values/thrown.js';
import type { Companion, Followed } from '../watch/followed.js';
import { readHookEvent } from './agent-hooks.js';
import { type HookHost, HookResponder } from './answer-event.js';

/** The first line that a client sends: the protocol and the agent. */
const GREETING = /^palimpsest-hook 1 ([a-z-]{1,40})$/;
/** Maximum size of an event with its first line. The client sends no larger one. */
const MOST_BYTES = 17 * 1024 * 1024;
/** Maximum time for a client to send its event, in milliseconds. A client gives up earlier. */
const SEND_MS = 10_000;
/** Maximum number of clients at once. Further clients get no answer, and their agents continue. */
const MOST_CLIENTS = 100;

/** Reads from a client until it closes its side. Undefined if it sends too much or disconnects. */
function received(socket: Socket): Promise<string | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const end = (text: string | undefined): void => {
      clearTimeout(limit);
      resolve(text);
    };
    // The limit is for the whole event, because a client may send its bytes slowly.
    const limit = setTimeout(() => end(undefined), SEND_MS);
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MOST_BYTES) end(undefined);
    });
    socket.once('end', () => end(Buffer.concat(chunks).toString('utf8')));
    socket.once('close', () => end(undefined));
  });
}

async function serveClient(socket: Socket, responder: HookResponder): Promise<void> {
  // A client that gave up does not take the answer.
  socket.on('error', () => socket.destroy());
  const text = await received(socket);
  if (text === undefined) return void socket.destroy();
  const cut = text.indexOf('\n');
  const [, agent] = GREETING.exec(text.slice(0, Math.max(0, cut))) ?? [];
  const event = agent === undefined ? undefined : readHookEvent(agent, text.slice(cut + 1));
  const reply = event === undefined ? undefined : await responder.answer(event);
  socket.end(reply?.text ?? '', (error?: Error | null) => {
    if (error !== undefined && error !== null) reply?.undelivered?.();
  });
}

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });

/**
 * Serves the clients of hooks on a Unix socket that only this user can open. Replaces the socket of
 * a dead process.
 * @throws {Error} a running process listens there, or the system refuses
 */
export async function serveHooks(
  socketPath: string,
  followed: Pick<Followed, 'session'>,
  host: HookHost,
): Promise<{ close(): Promise<void> }> {
  const responder = new HookResponder(followed, host);
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    void serveClient(socket, responder);
  });
  server.maxConnections = MOST_CLIENTS;
  if (await answers(socketPath)) throw new Error(`Another process listens on ${socketPath}. End it, then try again.`);
  await rm(socketPath, { force: true });
  await listen(server, socketPath);
  await chmod(socketPath, 0o600);
  return {
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** The installed program, for hooks that start the watcher. */
export interface HookProgram {
  readonly packageFolder: string;
  readonly at: Surroundings;
}

/** Installs the client of hooks and the command that starts the watcher, also without a setup. */
async function prepare(dataDir: string, program: HookProgram): Promise<void> {
  const cli = join(program.packageFolder, 'dist', 'cli.js');
  await writeStart(dataDir, [process.execPath, cli, 'watch', '--data', dataDir]);
  const isThere = await access(hookClient(dataDir)).then(
    () => true,
    () => false,
  );
  if (!isThere) await installHookClient(dataDir, program);
}

/** Returns the companion that serves hooks in the process of `palimpsest watch`. */
export const hookCompanion =
  (program: HookProgram): Companion =>
  async (followed, host) => {
    const served = await serveHooks(watchSocket(host.dataDir), followed, host);
    prepare(host.dataDir, program).catch((error: unknown) =>
      host.onNotice(`Hooks cannot start palimpsest watch: ${messageOf(error)}`),
    );
    return served;
  };
