import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readWatchReport } from '../../src/host/watch-report.js';
import { type FilesystemId, filesystemId, type SessionId, sessionId } from '../../src/objects/ids.js';
import type { Step } from '../../src/objects/step.js';
import { agentHomes } from '../../src/own-sessions/agent-homes.js';
import { ObjectStore } from '../../src/store/object-store.js';
import type { Companion, Followed } from '../../src/watch/followed.js';
import { runWatch, type WatchTimes } from '../../src/watch/run-watch.js';
import { WatchDatabase } from '../../src/watch/watch-database.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { type AgentMachine, agentMachine } from './agent-machine.js';
import { testAddress } from './context.js';
import { until } from './until.js';

let machines = 0;

/** A machine on which this process follows the sessions of agents. */
export class WatchedMachine {
  /** Unique among all tests, for ids of sessions. */
  readonly prefix: string;
  readonly filesystemId: FilesystemId;
  readonly machine: AgentMachine;
  readonly dataDir: string;
  readonly store: ObjectStore;
  readonly #xtdb: XtdbClient;
  #stop: AbortController | undefined;
  #ended: Promise<void> = Promise.resolve();
  #followed: Followed | undefined;

  private constructor(machine: AgentMachine, dataDir = join(machine.home, 'data')) {
    machines += 1;
    this.dataDir = dataDir;
    this.prefix = `w${process.pid}-${Date.now()}-${machines}`;
    this.filesystemId = filesystemId(`fs-${this.prefix}`);
    this.machine = machine;
    this.#xtdb = new XtdbClient(testAddress());
    this.store = new ObjectStore(this.#xtdb);
  }

  /** By default, this machine has its own data folder. */
  static async create(dataDir?: string): Promise<WatchedMachine> {
    return new WatchedMachine(await agentMachine(), dataDir);
  }

  get homes() {
    return agentHomes({ env: this.machine.env, home: this.machine.home, platform: 'linux' });
  }

  /** The sessions that the running watch follows. */
  get followed(): Followed {
    if (this.#followed === undefined) throw new Error('nothing is followed: call `start` first');
    return this.#followed;
  }

  /** Starts following and resolves once everything is watched. */
  async start(times: Partial<WatchTimes> = {}, companions: readonly Companion[] = []): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    const database = new WatchDatabase(
      this.dataDir,
      () => ({ address: async () => testAddress(), release: async () => undefined }),
      0,
    );
    const keep: Companion = async (followed) => {
      this.#followed = followed;
      return { close: async () => undefined };
    };
    await new Promise<void>((onReady, reject) => {
      this.#ended = runWatch({
        dataDir: this.dataDir,
        database,
        filesystemId: this.filesystemId,
        homes: this.homes,
        home: this.machine.home,
        companions: [keep, ...companions],
        signal: stop.signal,
        onReady,
        times: { restMs: 50, ...times },
      });
      this.#ended.catch(reject);
    });
  }

  /** Resolves once no session is followed. */
  ended = (): Promise<void> => this.#ended;

  /** Ends following. */
  async stop(): Promise<void> {
    this.#stop?.abort();
    await this.#ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    await this.store.close();
    await this.#xtdb.close();
    await this.machine.remove();
  }

  path(name: string): string {
    return join(this.machine.home, name);
  }

  /** Appends a text to a file below the home folder. */
  async append(name: string, text: string): Promise<void> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await appendFile(this.path(name), text);
  }

  async write(name: string, text: string): Promise<void> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), text);
  }

  steps = async (id: string): Promise<readonly Step[]> => {
    const snapshot = await this.store.latest();
    return snapshot.steps(sessionId(id)).catch(() => []);
  };

  /** Waits until a session has this number of steps, and returns them. */
  reached(id: string, count: number): Promise<readonly Step[]> {
    return until(
      () => this.steps(id),
      (steps) => steps.length >= count,
    );
  }

  /** Waits until nothing is being imported. */
  async rests(): Promise<void> {
    await until(
      () => readWatchReport(this.dataDir),
      (state) => state?.followed.length === 0,
    );
  }

  state = () => readWatchReport(this.dataDir);
}

/** Texts of messages and ids of calls, without the session's name. */
export const saidIn = (steps: readonly Step[], id: SessionId | string): readonly (string | undefined)[] =>
  steps.map(({ message, call, event }) => message?.text ?? call?.id.replace(`@${id}`, '') ?? event?.kind);
