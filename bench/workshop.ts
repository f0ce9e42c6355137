import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ContextClient, ensureNode, localFilesystemId, type NodeHandle, stopNode } from '../src/index.js';
import type { SharedLog } from '../src/node/shared-log.js';
import { defined } from '../src/values/defined.js';
import type { Sizes } from './sizes.js';
import { type Launch, StdioServer } from './stdio-server.js';

/** The folder of the benchmark and that of the project; this file runs from `bench/dist`. */
export const benchFolder = dirname(dirname(fileURLToPath(import.meta.url)));
export const projectFolder = dirname(benchFolder);

const PEER = join(benchFolder, 'node_modules', '@modelcontextprotocol', 'server-filesystem', 'dist', 'index.js');

/**
 * The working area of the benchmark: a temporary folder with the files to read and the data folders
 * of its nodes. Closing it stops all processes and removes the folder.
 */
export class Workshop {
  /** The folder that agents may use. */
  readonly files: string;
  readonly sizes: Sizes;
  readonly tell: (message: string) => void;
  readonly #scratch: string;
  readonly #cpuProfiles: string | undefined;
  readonly #dataDirs = new Set<string>();
  /** Data folders of nodes that share a log. */
  readonly #sharing = new Set<string>();
  readonly #closers: (() => Promise<unknown>)[] = [];

  private constructor(scratch: string, sizes: Sizes, tell: (message: string) => void, cpuProfiles: string | undefined) {
    this.#scratch = scratch;
    this.#cpuProfiles = cpuProfiles;
    this.files = join(scratch, 'files');
    this.sizes = sizes;
    this.tell = tell;
  }

  static async open(sizes: Sizes, tell: (message: string) => void, cpuProfiles: string | undefined): Promise<Workshop> {
    const scratch = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-bench-')));
    const workshop = new Workshop(scratch, sizes, tell, cpuProfiles);
    await mkdir(workshop.files);
    return workshop;
  }

  /** Returns the data folder with a name. Closing the workshop stops the folder's node. */
  dataDir(name: string): string {
    const dir = join(this.#scratch, name);
    this.#dataDirs.add(dir);
    return dir;
  }

  /**
   * Starts the node of a data folder with the default profile. With `log`, the node shares a log.
   * With `restoreFrom`, it starts with the index of a checkpoint.
   */
  async node(
    dataDir: string,
    { log, restoreFrom }: { readonly log?: SharedLog; readonly restoreFrom?: string } = {},
  ): Promise<NodeHandle> {
    if (log !== undefined) this.#sharing.add(dataDir);
    const node = await ensureNode({
      dataDir,
      profile: log?.profile ?? 'rocksdb',
      ...defined({ log, restoreFrom }),
      readyTimeoutMs: 3_600_000,
      cacheDir: join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest'),
      onProgress: this.tell,
    });
    this.#closers.push(() => node.release());
    return node;
  }

  /** Opens a client in this process, without a protocol. */
  async client(node: NodeHandle, dataDir: string): Promise<ContextClient> {
    const client = await ContextClient.create({
      address: node.address,
      roots: [this.files],
      cwd: this.files,
      filesystemId: await localFilesystemId(dataDir),
    });
    this.#closers.push(() => client.close());
    return client;
  }

  /**
   * Starts our server on the node of a data folder. Without a session name, the server opens a new
   * session.
   */
  ours(dataDir: string, session: string | undefined, flags: readonly string[] = []): StdioServer {
    const profiling = this.#cpuProfiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${this.#cpuProfiles}`];
    const command = [join(projectFolder, 'dist', 'cli.js'), 'mcp', '--root', this.files, '--data', dataDir];
    if (!this.#sharing.has(dataDir)) command.push('--profile', 'rocksdb');
    return this.#start({
      args: [...profiling, ...command, ...(session === undefined ? [] : ['--session', session]), ...flags],
      cwd: this.files,
    });
  }

  /** Starts the public filesystem server. */
  peer(): StdioServer {
    return this.#start({ args: [PEER, this.files], cwd: this.files });
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#closers.reverse().map((close) => close()));
    for (const dataDir of this.#dataDirs) await stopNode(dataDir);
    await rm(this.#scratch, { recursive: true, force: true });
  }

  #start(launch: Launch): StdioServer {
    const server = new StdioServer(launch);
    this.#closers.push(() => server.close());
    return server;
  }
}
