import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Agent, httpAgent, type Serve, startServe, temporaryRoot } from '../support/mcp-clients.js';

/** A server on the suite's node over a folder, and an agent that attacks it. */
export interface AttackedServer {
  /** Contains `inside`, the folder that the server may use. */
  readonly base: string;
  readonly root: string;
  readonly serve: Serve;
  readonly agent: Agent;
  close(): Promise<void>;
}

/** Starts one. It must still run when it is closed. */
export async function attackedServer(...flags: readonly string[]): Promise<AttackedServer> {
  const { root: base, remove } = await temporaryRoot();
  const root = join(base, 'inside');
  await mkdir(root);
  const serve = await startServe(['--log-level', 'silent', ...flags], root);
  const agent = await httpAgent(serve);
  return {
    base,
    root,
    serve,
    agent,
    close: async () => {
      await agent.close();
      const ended = await serve.close();
      await remove();
      if (ended !== 0) throw new Error(`the attacked server ended with ${ended}`);
    },
  };
}
