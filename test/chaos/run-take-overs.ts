import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stepsInForks, stepsInForkText } from '../../src/client/recovery/rescue-fork.js';
import { ContextClient } from '../../src/client/session/context-client.js';
import { NodeUse } from '../../src/host/open-store.js';
import { adoptableJournals } from '../../src/journal/journals.js';
import { stopNode } from '../../src/node/stop-node.js';
import { filesystemId, type SessionId, sessionId } from '../../src/objects/ids.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { runCli } from '../support/run-cli.js';
import { callReport } from '../support/tracked-project.js';
import type { Line } from './acknowledged.js';
import { checkSession } from './check-session.js';
import { killNow } from './kill.js';
import { Random } from './random.js';
import { Service } from './service.js';
import type { WorkloadPlan } from './workload-plan.js';

export interface TakeOverOptions {
  /** The built workload, the built deliverer, and the built `palimpsest`. */
  readonly scripts: { readonly workload: string; readonly deliverer: string; readonly cli: string };
  readonly seed: number;
  readonly kills: number;
  readonly onProgress?: (line: string) => void;
}

/** The ways in which a session changes its owner, and in which its steps are delayed. */
const DEEDS = { killed: 50, taken: 20, deliverer: 12, held: 12, jvm: 4 } as const;
type Deed = keyof typeof DEEDS;

/** The result of a run. */
export interface TakeOverReport {
  readonly seed: number;
  /** Everything that is wrong; empty if nothing is. */
  readonly problems: readonly string[];
  readonly deeds: Readonly<Partial<Record<Deed, number>>>;
  readonly kills: number;
  readonly acknowledged: { readonly calls: number; readonly messages: number; readonly contexts: number };
  readonly stored: { readonly steps: number; readonly calls: number };
  readonly imports: number;
  readonly restores: number;
  readonly seconds: number;
}

const OPEN_LIMIT_MS = 240_000;
/**
 * The time for which a deliverer is stopped: mostly short, sometimes longer than every client's
 * time limit.
 */
const HELD_MS = { moment: 600, long: 12_000 };
const BUNDLES = 3;

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Sessions of another database, each as a bundle. */
async function makeBundles(
  folder: string,
  cli: string,
): Promise<readonly { readonly id: SessionId; readonly file: string }[]> {
  const dataDir = join(folder, 'source');
  const node = new NodeUse({ dataDir, profile: 'memory', idleExitSeconds: 600 });
  const client = await ContextClient.create({
    address: () => node.address(),
    roots: [folder],
    cwd: folder,
    filesystemId: filesystemId('fs-source'),
  });
  const bundles: { id: SessionId; file: string }[] = [];
  for (let n = 0; n < BUNDLES; n++) {
    const session = await client.openSession({ id: `imported-${n}` });
    for (let i = 0; i < 10; i++)
      await session.recordCall(callReport({ tool: 'bash', content: `output ${i} of ${session.id}` }));
    await client.closeSession(session);
    const file = join(folder, `${session.id}.bundle`);
    const { code, stderr } = await runCli(['export', session.id, file, '--data', dataDir], {}, cli);
    if (code !== 0) throw new Error(`the bundle of ${session.id} could not be written: ${stderr}`);
    bundles.push({ id: session.id, file });
  }
  await client.close();
  await node.release();
  await stopNode(dataDir);
  return bundles;
}

/**
 * One run: writers take two sessions over from one another. Deliverers, imports and restores run
 * beside them.
 */
class TakeOvers {
  readonly #options: TakeOverOptions;
  readonly #folder: string;
  readonly #random: Random;
  readonly #said: Line[] = [];
  readonly #problems: string[] = [];
  readonly #deeds: Partial<Record<Deed, number>> = {};
  readonly #sessions = [0, 1].map((writer) => ['a', 'b'].map((name) => sessionId(`taken-${writer}-${name}`)));
  #bundles: readonly { readonly id: SessionId; readonly file: string }[] = [];
  #processes = 0;
  #kills = 0;
  #isOver = false;
  #imports = 0;
  #restores = 0;

  constructor(folder: string, options: TakeOverOptions) {
    this.#folder = folder;
    this.#options = options;
    this.#random = new Random(options.seed);
  }

  get #dataDir(): string {
    return join(this.#folder, 'data');
  }

  get #filesystemId() {
    return filesystemId(`fs-take-overs-${this.#options.seed}`);
  }

  #start(script: string, sessions: readonly SessionId[], finish = false): Service {
    this.#processes += 1;
    const plan: WorkloadPlan = {
      dataDir: this.#dataDir,
      root: join(this.#folder, 'files'),
      filesystemId: this.#filesystemId,
      sessions,
      // The check at the end reads every step.
      since: Object.fromEntries(sessions.map((id) => [id, Number.MAX_SAFE_INTEGER])),
      linesFile: join(this.#folder, `lines-${this.#processes}.jsonl`),
      seed: this.#options.seed * 10_007 + this.#processes,
      openLimitMs: OPEN_LIMIT_MS,
      pauseMs: 150,
      takeOver: true,
      finish,
    };
    return new Service(script, plan);
  }

  #deliverer(): Service {
    return this.#start(this.#options.scripts.deliverer, []);
  }

  #writer(place: number): Service {
    return this.#start(this.#options.scripts.workload, this.#sessions[place] ?? []);
  }

  /** Kills a process, and collects what it reported. */
  async #kill(service: Service): Promise<void> {
    if (service.kill()) this.#kills += 1;
    await this.#end(service);
  }

  async #end(service: Service, expected: number | null = null): Promise<void> {
    const { lines, code, stderr } = await service.end();
    this.#said.push(...lines);
    for (const line of lines) if (line.kind === 'refused') this.#problems.push(`${line.what}: ${line.error}`);
    if (code !== expected) this.#problems.push(`a process ended with code ${code}: ${stderr.slice(-2_000)}`);
  }

  /** Repeats a verb until the run is over. Retries failures while the node is down. */
  async #repeat(args: () => readonly string[], onDone: () => void): Promise<void> {
    while (!this.#isOver) {
      const { code } = await runCli([...args(), '--data', this.#dataDir], {}, this.#options.scripts.cli);
      if (code === 0) onDone();
      await delay(200);
    }
  }

  async #hold(deliverer: Service): Promise<void> {
    deliverer.hold(true);
    await delay(this.#random.chance(0.05) ? HELD_MS.long : this.#random.between(0, HELD_MS.moment));
    deliverer.hold(false);
  }

  async #killUntil(kills: number): Promise<void> {
    const random = this.#random;
    const deliverers = [this.#deliverer(), this.#deliverer()];
    const writers = [this.#writer(0), this.#writer(1)];
    let held = Promise.resolve();
    while (this.#kills < kills && this.#problems.length === 0) {
      const place = random.between(0, 1);
      const running = writers[place] as Service;
      // The event sometimes comes while it opens its sessions, and otherwise while it works.
      if (!random.chance(0.15)) await running.opened(OPEN_LIMIT_MS);
      await delay(random.between(5, 400));
      const deed = random.weighted(DEEDS);
      this.#deeds[deed] = (this.#deeds[deed] ?? 0) + 1;
      const nth = random.between(0, 1);
      const deliverer = deliverers[nth] as Service;
      if (deed === 'killed') {
        // Either the deliverers find the journal first, or the next writer does when it opens its
        // sessions.
        await this.#kill(running);
        writers[place] = this.#writer(place);
      } else if (deed === 'taken') {
        const next = this.#writer(place);
        writers[place] = next;
        await next.opened(OPEN_LIMIT_MS);
        await this.#kill(running);
      } else if (deed === 'held') {
        await this.#kill(running);
        await delay(random.between(0, 100));
        await held;
        held = this.#hold(deliverer);
        writers[place] = this.#writer(place);
      } else if (deed === 'deliverer') {
        await this.#kill(deliverer);
        deliverers[nth] = this.#deliverer();
      } else if ((await killNow(this.#dataDir, () => false, 'jvm')).killed.length > 0) this.#kills += 1;
      this.#options.onProgress?.(
        `${this.#kills} kills, last ${deed}, ${this.#said.length} lines, ${this.#problems.length} problems`,
      );
    }
    await held;
    for (const service of [...writers, ...deliverers]) {
      service.kill();
      await this.#end(service);
    }
  }

  async #check(): Promise<TakeOverReport['stored']> {
    const node = new NodeUse({ dataDir: this.#dataDir, profile: 'rocksdb', idleExitSeconds: 600 });
    const client = await ContextClient.create({
      address: await node.address(),
      roots: [this.#folder],
      cwd: this.#folder,
      filesystemId: this.#filesystemId,
    });
    try {
      const snapshot = await client.store.latest();
      for (const one of await stepsInForks(snapshot)) this.#problems.push(stepsInForkText(one));
      const [mine, theirs] = [this.#sessions.flat(), this.#bundles.map(({ id }) => id)];
      const begun = new Set([...mine, ...theirs]);
      for (const { id } of await snapshot.sessions())
        if (!begun.has(id)) this.#problems.push(`session ${id} was not begun by this run`);
      const found = [];
      for (const id of mine) {
        const said = this.#said.filter((line) => 'session' in line && line.session === id);
        found.push(await checkSession(client.store, id, said, []));
      }
      this.#problems.push(...found.flatMap(({ problems }) => problems));
      for (const id of begun)
        if (!(await verifySession(client.store, id)).ok)
          this.#problems.push(`session ${id} is not verified: palimpsest verify says more`);
      const waiting = await adoptableJournals(this.#dataDir);
      if (waiting.length > 0) this.#problems.push(`journals still wait: ${waiting.join(', ')}`);
      return { steps: sum(found.map(({ steps }) => steps)), calls: sum(found.map(({ calls }) => calls.length)) };
    } finally {
      await client.close();
      await node.release();
    }
  }

  async run(): Promise<TakeOverReport> {
    const began = performance.now();
    for (const name of ['files', 'restored']) await mkdir(join(this.#folder, name), { recursive: true });
    this.#bundles = await makeBundles(this.#folder, this.#options.scripts.cli);
    const files = this.#random;
    const beside = [
      this.#repeat(
        () => ['import', files.pick(this.#bundles).file],
        () => {
          this.#imports += 1;
        },
      ),
      this.#repeat(
        () => {
          const to = join(this.#folder, 'restored', String(this.#restores));
          return [
            'restore',
            files.pick(this.#sessions.flat()),
            '--apply',
            '--to',
            to,
            '--root',
            join(this.#folder, 'files'),
          ];
        },
        () => {
          this.#restores += 1;
        },
      ),
    ];
    await this.#killUntil(this.#options.kills);
    this.#isOver = true;
    await Promise.all(beside);
    await this.#end(this.#start(this.#options.scripts.workload, this.#sessions.flat(), true), 0);
    for (const { file } of this.#bundles) {
      const { code, stderr } = await runCli(['import', file, '--data', this.#dataDir], {}, this.#options.scripts.cli);
      if (code !== 0) this.#problems.push(`${file} is not imported: ${stderr}`);
    }
    const stored = await this.#check();
    const count = (kind: Line['kind']): number => this.#said.filter((line) => line.kind === kind).length;
    return {
      seed: this.#options.seed,
      problems: this.#problems,
      deeds: this.#deeds,
      kills: this.#kills,
      acknowledged: { calls: count('call'), messages: count('message'), contexts: count('handed') },
      stored,
      imports: this.#imports,
      restores: this.#restores,
      seconds: Math.round((performance.now() - began) / 1_000),
    };
  }
}

/**
 * Kills writers that take sessions over from one another, and the processes that deliver their
 * journals, beside imports and restores. Checks that every acknowledged call is in its session once
 * and in order.
 *
 * Removes the folder if there are no problems; otherwise the report names it.
 */
export async function runTakeOvers(options: TakeOverOptions): Promise<TakeOverReport> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-take-overs-')));
  try {
    const report = await new TakeOvers(folder, options).run();
    if (report.problems.length > 0)
      return { ...report, problems: [...report.problems, `everything is kept in ${folder}`] };
    await stopNode(join(folder, 'data'));
    await rm(folder, { recursive: true, force: true });
    return report;
  } finally {
    await stopNode(join(folder, 'data'));
  }
}
