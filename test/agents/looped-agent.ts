import { dirname, join } from 'node:path';
import { cliPath } from '../support/mcp-clients.js';
import type { CapturedCall, LoopModel, Move } from './loop-model.js';
import type { ToolDialect } from './loop-script.js';
import type { LoopSetting } from './loop-setting.js';
import { OpencodeServer } from './opencode-server.js';
import { PiProcess } from './pi-process.js';

/** The harnesses whose loop has our context. */
export type Harness = 'pi' | 'opencode';

/** How each of them calls its tools. */
export const DIALECTS: Readonly<Record<Harness, ToolDialect>> = {
  pi: {
    read: (path) => ({ name: 'read', args: { path } }),
    shell: (command) => ({ name: 'bash', args: { command } }),
    edit: (path, oldText, newText) => ({ name: 'edit', args: { path, edits: [{ oldText, newText }] } }),
  },
  opencode: {
    read: (path) => ({ name: 'read', args: { filePath: path } }),
    shell: (command) => ({ name: 'bash', args: { command, description: 'looks at something' } }),
    edit: (path, oldString, newString) => ({ name: 'edit', args: { filePath: path, oldString, newString } }),
  },
};

/** The built file of ours that each harness loads. */
export const PARTS: Readonly<Record<Harness, string>> = {
  pi: join(dirname(cliPath), 'pi.js'),
  opencode: join(dirname(cliPath), 'opencode.js'),
};

/** The model's move that shows a log of the project, which only the shell reads. */
export const showsLog = (harness: Harness, n: number): Move => ({
  tools: [DIALECTS[harness].shell(`cat notes/s${n}.log`)],
});

/** Where an agent runs. */
export interface AgentHome {
  readonly home: string;
  readonly cwd: string;
  readonly dataDir: string;
  readonly model: LoopModel;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the harness runs without Palimpsest. */
  readonly alone?: boolean;
}

/** A harness with Palimpsest in its loop and one session, driven as its user would. */
export interface LoopedAgent {
  /** The session that gets the prompts. */
  readonly session: string;
  prompt(text: string): Promise<void>;
  /** Says `/palimpsest WORDS`; in OpenCode the model answers it. */
  command(words: string): Promise<void>;
  compact(): Promise<void>;
  /** Ends the harness and continues the session in another process. */
  restart(): Promise<void>;
  /** Continues in a fork of the session. */
  fork(): Promise<void>;
  end(): Promise<void>;
  kill(): void;
}

async function piAgent(home: AgentHome): Promise<LoopedAgent> {
  const where = { ...home, extension: home.alone === true ? undefined : PARTS.pi };
  const start = async (...args: readonly string[]) => {
    const pi = await PiProcess.start(where, ...args);
    const { sessionId, sessionFile } = await pi.command({ type: 'get_state' });
    return { pi, session: String(sessionId), file: String(sessionFile) };
  };
  let now = await start();
  const again = async (...args: readonly string[]): Promise<void> => {
    await now.pi.end();
    now = await start(...args);
  };
  return {
    get session() {
      return now.session;
    },
    prompt: (text) => now.pi.prompt(text),
    command: (words) => now.pi.prompt(`/palimpsest ${words}`),
    compact: async () => void (await now.pi.command({ type: 'compact' })),
    restart: () => again('--continue'),
    fork: () => again('--fork', now.file),
    end: () => now.pi.end(),
    kill: () => now.pi.kill(),
  };
}

async function opencodeAgent(home: AgentHome): Promise<LoopedAgent> {
  const where = { ...home, plugin: home.alone === true ? undefined : PARTS.opencode };
  let server = await OpencodeServer.start(where);
  let session = await server.newSession();
  return {
    get session() {
      return session;
    },
    prompt: (text) => server.prompt(session, text),
    command: (words) => {
      home.model.add([{ say: 'ok' }]);
      return server.command(session, 'palimpsest', words);
    },
    compact: () => server.compact(session),
    restart: async () => {
      await server.end();
      server = await OpencodeServer.start(where);
    },
    fork: async () => {
      session = await server.fork(session);
    },
    end: () => server.end(),
    kill: () => server.kill(),
  };
}

/** Starts a harness with Palimpsest in its loop. */
export const startLoopedAgent = (harness: Harness, home: AgentHome): Promise<LoopedAgent> =>
  harness === 'pi' ? piAgent(home) : opencodeAgent(home);

/** An OpenCode with Palimpsest in its loop, and one session. */
export interface LoopedServer {
  readonly server: OpencodeServer;
  readonly session: string;
  /**
   * Lets the model make moves during `work`. Returns the calls of the agent's turns in that time.
   */
  during(work: () => Promise<void>, ...moves: readonly Move[]): Promise<readonly CapturedCall[]>;
}

/** Starts OpenCode with Palimpsest in its loop; the end of the setting kills it. */
export async function startLoopedServer({ where, model, atEnd }: LoopSetting): Promise<LoopedServer> {
  const server = await OpencodeServer.start({ ...where, plugin: PARTS.opencode });
  atEnd(() => server.kill());
  return {
    server,
    session: await server.newSession(),
    during: async (work, ...moves) => {
      const from = model.calls.length;
      model.add(moves);
      await work();
      return model.calls.slice(from).filter(({ main }) => main);
    },
  };
}
