import { type ChildProcess, spawn } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { CallToolResult, Progress } from '@modelcontextprotocol/sdk/types.js';
import { clientFolder } from '../../src/process/data-folder.js';

/** The built command line program. */
export const cliPath = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'dist', 'cli.js');

/** An answer to an agent. */
export interface Answer {
  readonly text: string;
  readonly isError: boolean;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly raw: CallToolResult;
}

/** A real MCP client, connected to a built `palimpsest`. */
export interface Agent {
  readonly client: Client;
  readonly transport: StdioClientTransport | StreamableHTTPClientTransport;
  call(name: string, args?: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<Answer>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

function agentOf(client: Client, transport: Agent['transport']): Agent {
  return {
    client,
    transport,
    call: async (name, args = {}, { meta, signal, onProgress } = {}) => {
      const raw = (await client.callTool(
        { name, arguments: { ...args }, ...(meta === undefined ? {} : { _meta: { ...meta } }) },
        undefined,
        {
          timeout: 240_000,
          ...(signal === undefined ? {} : { signal }),
          ...(onProgress === undefined ? {} : { onprogress: onProgress }),
        },
      )) as CallToolResult;
      const [part] = raw.content;
      if (raw.content.length !== 1 || part?.type !== 'text' || part.text === '' || raw.structuredContent !== undefined)
        throw new Error(`expected a single text: ${JSON.stringify(raw).slice(0, 500)}`);
      return {
        text: part.text,
        isError: raw.isError === true,
        meta: (raw._meta?.palimpsest ?? {}) as Answer['meta'],
        raw,
      };
    },
    close: () => client.close(),
  };
}

/** Returns the data folder of the suite's node. */
export function suiteData(): string {
  const data = process.env.PALIMPSEST_TEST_DATA;
  if (data === undefined) throw new Error('PALIMPSEST_TEST_DATA is not set: run through the live project of jest');
  return data;
}

/** Returns the folder of leases and journals for processes on the suite's data folder. */
export const suiteClientFolder = (): string => clientFolder(suiteData(), process.env.XTDB_URL);

/** Returns flags that make a server use the suite's node. */
export const suiteFlags = (): readonly string[] => [
  '--data',
  suiteData(),
  '--profile',
  process.env.PALIMPSEST_TEST_PROFILE ?? 'memory',
];

/** Options for starting a server process. */
export interface StartOptions {
  /** Removes root's privilege to read everything from the process. */
  readonly withoutOverride?: boolean;
  /** An open file for its log; by default the stderr of this process. */
  readonly stderr?: number;
  /** The program of another build. */
  readonly program?: string;
}

/**
 * Starts `palimpsest mcp` over a folder and connects to it. Uses the suite's node unless the
 * arguments name another data folder.
 */
export async function stdioAgent(
  root: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  { withoutOverride = false, stderr, program = cliPath }: StartOptions = {},
): Promise<Agent> {
  const flags = args.includes('--data') ? [] : suiteFlags();
  const drop =
    withoutOverride && process.getuid?.() === 0
      ? ['--bounding-set=-dac_override,-dac_read_search', '--', process.execPath]
      : [];
  const transport = new StdioClientTransport({
    command: drop.length > 0 ? 'setpriv' : process.execPath,
    args: [...drop, program, 'mcp', '--root', root, ...flags, '--log-level', 'error', ...args],
    env: { ...getDefaultEnvironment(), ...xdgOf(process.env), ...env },
    cwd: root,
    stderr: stderr ?? 'inherit',
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  return agentOf(client, transport);
}

/**
 * Returns the variables that every test process shares: cache of the built node, JVM options, and
 * nodes.
 */
function xdgOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const names = ['XDG_CACHE_HOME', 'XDG_RUNTIME_DIR', 'JAVA_HOME', 'JAVA_TOOL_OPTIONS', 'XTDB_URL'] as const;
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

/** A running `palimpsest serve`. */
export interface Serve {
  readonly url: string;
  readonly token: string | undefined;
  /**
   * Ends it with a signal, SIGTERM by default. Returns its exit code, or the signal that killed it.
   */
  close(signal?: 'SIGTERM' | 'SIGINT'): Promise<number | NodeJS.Signals>;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
}

async function announced(child: ChildProcess): Promise<{ readonly url: string; readonly token: string | undefined }> {
  let text = '';
  for await (const chunk of child.stderr ?? []) {
    text += String(chunk);
    const url = /listens on (\S+)\n/.exec(text)?.[1];
    const token = /Bearer (\S+)\n/.exec(text)?.[1];
    if (url !== undefined) return { url, token };
  }
  throw new Error(`serve ended before it listened: ${text}`);
}

/**
 * Starts `palimpsest serve` on a free port. Uses the suite's node unless the arguments name another
 * data folder.
 */
export async function startServe(
  args: readonly string[] = [],
  root: string = tmpdir(),
  env: Readonly<Record<string, string>> = {},
): Promise<Serve> {
  const flags = args.includes('--data') ? [] : suiteFlags();
  const child = spawn(process.execPath, [cliPath, 'serve', '--port', '0', '--root', root, ...flags, ...args], {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const { url, token } = await announced(child);
  child.stderr.resume();
  return {
    url,
    token,
    close: async (signal = 'SIGTERM') => {
      child.kill(signal);
      const [code, killedBy] = (await ended) as [number, null] | [null, NodeJS.Signals];
      return code ?? killedBy;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * Node drops the listeners of a signal only during garbage collection. The client uses one signal
 * for all requests of a connection.
 */
const quietFetch: typeof fetch = (url, init) => {
  if (init?.signal) setMaxListeners(0, init.signal);
  return fetch(url, init);
};

/** Connects to a `palimpsest serve`. */
export async function httpAgent(serve: Pick<Serve, 'url' | 'token'>): Promise<Agent> {
  const headers = serve.token === undefined ? {} : { authorization: `Bearer ${serve.token}` };
  const transport = new StreamableHTTPClientTransport(new URL(serve.url), {
    requestInit: { headers },
    fetch: quietFetch,
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport as Parameters<Client['connect']>[0]);
  return agentOf(client, transport);
}

/** Creates a folder. Returns its real path and a function that removes it. */
export async function temporaryRoot(): Promise<{ readonly root: string; remove(): Promise<void> }> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-root-')));
  // A program that has just ended may leave a child that still writes its last file.
  const remove = (): Promise<void> => rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  return { root, remove };
}
