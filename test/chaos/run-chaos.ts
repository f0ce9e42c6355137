import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stopNode } from '../../src/node/stop-node.js';
import { filesystemId, type SessionId, sessionId } from '../../src/objects/ids.js';
import type { Line } from './acknowledged.js';
import { type CheckCounts, checkEverything } from './check-everything.js';
import { missingSteps } from './check-resume.js';
import { chooseKill, type Kill, type KillKind, killNow, nodeState } from './kill.js';
import { Random } from './random.js';
import { Service } from './service.js';
import { type Tear, tearJournal } from './tear-journal.js';

export interface ChaosOptions {
  /** The built workload. */
  readonly script: string;
  readonly seed: number;
  readonly kills: number;
  /** Number of kills after which two new sessions begin. */
  readonly killsPerPair?: number;
  readonly pauseMs?: number;
  /** Called with progress lines. */
  readonly onProgress?: (line: string) => void;
}

/** The result of a run. */
export interface ChaosReport {
  readonly seed: number;
  /** Everything that is wrong; empty if nothing is. */
  readonly problems: readonly string[];
  readonly kills: Readonly<Partial<Record<KillKind, number>>>;
  readonly killedProcesses: number;
  readonly tears: Readonly<Partial<Record<Tear, number>>>;
  /** Number of processes of the workload that opened both sessions. */
  readonly resumes: number;
  readonly resumeMs: readonly number[];
  readonly acknowledged: Readonly<Record<Line['kind'], number>>;
  readonly notices: number;
  readonly counts: CheckCounts;
  readonly seconds: { readonly kills: number; readonly checks: number };
}

const OPEN_LIMIT_MS = 60_000;

function add<K extends string>(counts: Partial<Record<K, number>>, key: K): void {
  counts[key] = (counts[key] ?? 0) + 1;
}

/** One run: starts processes, kills them, damages the journal, starts again, and checks. */
class Chaos {
  readonly #options: ChaosOptions;
  readonly #folder: string;
  readonly #random: Random;
  readonly #said: Line[] = [];
  /** Acknowledgements since the last check of its session. */
  #unchecked: readonly Line[] = [];
  readonly #problems: string[] = [];
  readonly #since: Record<string, number> = {};
  readonly #kills: Partial<Record<KillKind, number>> = {};
  readonly #tears: Partial<Record<Tear, number>> = {};
  #sessions: readonly SessionId[] = [];
  readonly #all: SessionId[] = [];
  #incarnation = 0;
  #killedProcesses = 0;
  #crashes = 0;

  constructor(folder: string, options: ChaosOptions) {
    this.#folder = folder;
    this.#options = options;
    this.#random = new Random(options.seed);
  }

  get #dataDir(): string {
    return join(this.#folder, 'data');
  }

  get #root(): string {
    return join(this.#folder, 'files');
  }

  get #filesystemId() {
    return filesystemId(`fs-chaos-${this.#options.seed}`);
  }

  #beginPair(number: number): void {
    this.#sessions = ['a', 'b'].map((name) => sessionId(`pair-${number}-${name}`));
    this.#all.push(...this.#sessions);
  }

  #start(finish = false): Service {
    this.#incarnation += 1;
    return new Service(this.#options.script, {
      dataDir: this.#dataDir,
      root: this.#root,
      filesystemId: this.#filesystemId,
      sessions: this.#sessions,
      since: this.#since,
      linesFile: join(this.#folder, `lines-${this.#incarnation}.jsonl`),
      seed: this.#options.seed * 10_007 + this.#incarnation,
      pauseMs: this.#options.pauseMs ?? 20,
      finish,
    });
  }

  /**
   * Collects what a process reported, and checks whether it found what earlier processes had
   * reported.
   */
  async #end(service: Service, expected: 'killed' | 'finished'): Promise<void> {
    const { lines, code, stderr } = await service.end();
    for (const line of lines) {
      if (line.kind === 'refused') this.#problems.push(`process ${this.#incarnation}: ${line.what}: ${line.error}`);
      if (line.kind !== 'resumed') continue;
      for (const found of line.found) {
        this.#problems.push(...missingSteps(found, this.#unchecked));
        this.#since[found.session] = found.seq;
        this.#unchecked = this.#unchecked.filter((said) => !('session' in said) || said.session !== found.session);
      }
    }
    this.#said.push(...lines);
    this.#unchecked = [...this.#unchecked, ...lines];
    if (expected === 'finished' && code !== 0)
      this.#problems.push(`the last process ended with code ${code}: ${stderr.slice(-2_000)}`);
    if (expected === 'killed' && code !== null)
      this.#problems.push(`process ${this.#incarnation} ended by itself with code ${code}: ${stderr.slice(-2_000)}`);
  }

  async #moment(service: Service): Promise<void> {
    const random = this.#random;
    // The kill sometimes comes while it opens, adopts and resumes, and otherwise while it works.
    if (random.chance(0.2)) return delay(random.between(0, 600));
    await service.opened(OPEN_LIMIT_MS);
    // Sometimes waits until the node is back, so that not everything happens during an outage.
    if (random.chance(0.5)) await this.#nodeIsBack();
    await delay(random.between(5, 500));
  }

  async #nodeIsBack(): Promise<void> {
    const until = Date.now() + OPEN_LIMIT_MS;
    while ((await nodeState(this.#dataDir))?.phase !== 'ready' && Date.now() < until) await delay(25);
  }

  #note({ kind, killed }: Kill): void {
    add(this.#kills, kind);
    this.#killedProcesses += killed.length;
    if (killed.includes('supervisor')) this.#crashes = 0;
    else if (killed.includes('jvm')) this.#crashes += 1;
  }

  async #killUntil(kills: number): Promise<void> {
    const { killsPerPair = 20, onProgress } = this.#options;
    let service: Service | undefined;
    let done = 0;
    for (let pair = 0; done < kills && this.#problems.length === 0; ) {
      if (done >= pair * killsPerPair && service === undefined) this.#beginPair(++pair);
      service ??= this.#start();
      await this.#moment(service);
      const running = service;
      const kill = await killNow(this.#dataDir, () => running.kill(), chooseKill(this.#random, this.#crashes));
      if (kill.killed.length > 0) {
        this.#note(kill);
        done += 1;
      }
      if (!kill.killed.includes('service') && running.isRunning) continue;
      await this.#end(running, 'killed');
      service = undefined;
      add(this.#tears, this.#random.chance(0.5) ? await tearJournal(this.#dataDir, this.#said, this.#random) : 'none');
      onProgress?.(
        `${done} kills, last ${kill.kind}, ${this.#said.length} lines, ` +
          `${this.#all.length} sessions, ${this.#problems.length} problems`,
      );
    }
    if (service === undefined) return;
    service.kill();
    await this.#end(service, 'killed');
  }

  async run(): Promise<ChaosReport> {
    await mkdir(this.#root, { recursive: true });
    const began = performance.now();
    await this.#killUntil(this.#options.kills);
    await this.#end(this.#start(true), 'finished');
    const checking = performance.now();
    const where = { dataDir: this.#dataDir, root: this.#root, filesystemId: this.#filesystemId };
    const { problems, counts } = await checkEverything(where, {
      sessions: this.#all,
      resumed: this.#sessions,
      said: this.#said,
    });
    const acknowledged = { call: 0, message: 0, prompt: 0, context: 0, handed: 0, resumed: 0, refused: 0 };
    for (const { kind } of this.#said) acknowledged[kind] += 1;
    const resumed = this.#said.flatMap((line) => (line.kind === 'resumed' ? [line] : []));
    return {
      seed: this.#options.seed,
      problems: [...this.#problems, ...problems],
      kills: this.#kills,
      killedProcesses: this.#killedProcesses,
      tears: this.#tears,
      resumes: resumed.length,
      resumeMs: resumed.map(({ ms }) => ms),
      acknowledged,
      notices: resumed.reduce((sum, { notices }) => sum + notices.length, 0),
      counts,
      seconds: {
        kills: Math.round((checking - began) / 1000),
        checks: Math.round((performance.now() - checking) / 1000),
      },
    };
  }
}

/**
 * Repeatedly kills a workload of two sessions and its node at random points, over one data folder,
 * and checks the result. Removes the folder if there are no problems; otherwise the report names
 * it.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-chaos-')));
  try {
    const report = await new Chaos(folder, options).run();
    if (report.problems.length > 0)
      return { ...report, problems: [...report.problems, `everything is kept in ${folder}`] };
    await stopNode(join(folder, 'data'));
    await rm(folder, { recursive: true, force: true });
    return report;
  } finally {
    await stopNode(join(folder, 'data'));
  }
}
