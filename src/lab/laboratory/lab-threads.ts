import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { NodeAddress } from '../../xtdb/address.js';
import type { LabConfig } from './lab-config.js';
import type { LabFinding, LabHost } from './score-recording.js';

/** A message from a worker. The reply to an `ask` has the number of the `ask`. */
export type FromWorker =
  | { readonly ask: number; readonly isNew: string }
  | { readonly ask: number; readonly open: true }
  | { readonly renew: true }
  | { readonly found: LabFinding }
  | { readonly done: true };

/** A message to a worker: a recording to score, or a reply. */
export type ToWorker =
  | { readonly path: string }
  | { readonly reply: number; readonly isNew: boolean }
  | { readonly reply: number; readonly address: NodeAddress }
  | { readonly reply: number; readonly error: unknown };

/**
 * Size of V8's young generation in megabytes. Scoring makes many objects, so a smaller size would
 * cost too many collections.
 */
const YOUNG_MB = 64;

/**
 * Returns the path of the workers' program, which is next to the running program; undefined if
 * there is none.
 */
export function labWorker(): string | undefined {
  const path = join(dirname(realpathSync(process.argv[1] ?? '.')), 'lab-worker.js');
  return existsSync(path) ? path : undefined;
}

/** A recording that a worker is scoring. */
interface Job {
  readonly path: string;
  readonly end: () => void;
}

/** Scores recordings in worker threads. Each worker scores one recording at a time. */
export class LabThreads {
  readonly #program: string;
  readonly #config: LabConfig;
  readonly #host: LabHost;
  readonly #idle: Worker[] = [];
  readonly #all = new Set<Worker>();
  readonly #jobs = new Map<Worker, Job>();

  constructor(program: string, { config, host }: { readonly config: LabConfig; readonly host: LabHost }) {
    this.#program = program;
    this.#config = config;
    this.#host = host;
    // A running policy cannot be interrupted, so the worker is ended. The report keeps the complete
    // sessions.
    host.signal?.addEventListener('abort', () => void this.end(), { once: true });
  }

  /** Scores one recording in an idle worker, or in a new worker. */
  recording(path: string): Promise<void> {
    const worker = this.#idle.pop() ?? this.#start();
    return new Promise((resolve) => {
      this.#jobs.set(worker, { path, end: resolve });
      worker.postMessage({ path } satisfies ToWorker);
    });
  }

  /** Ends all workers and their current recordings. */
  async end(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
  }

  #start(): Worker {
    const worker = new Worker(this.#program, {
      workerData: this.#config,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    this.#all.add(worker);
    worker.on('message', (message: FromWorker) => this.#take(worker, message));
    worker.on('error', (error) => this.#failed(worker, error));
    worker.on('exit', () => {
      this.#all.delete(worker);
      this.#ended(worker)?.end();
    });
    return worker;
  }

  #take(worker: Worker, message: FromWorker): void {
    const job = this.#jobs.get(worker);
    if (job === undefined) return;
    if ('found' in message) this.#host.found(job.path, message.found);
    else if ('renew' in message) this.#host.renew();
    else if ('ask' in message) void this.#reply(worker, message);
    else {
      this.#ended(worker);
      this.#idle.push(worker);
      job.end();
    }
  }

  async #reply(worker: Worker, message: Extract<FromWorker, { readonly ask: number }>): Promise<void> {
    const reply = message.ask;
    const answer = async (): Promise<ToWorker> => {
      if ('isNew' in message) return { reply, isNew: await this.#host.isNew(message.isNew) };
      const { address } = await this.#host.open();
      return { reply, address: typeof address === 'function' ? await address() : address };
    };
    worker.postMessage(await answer().catch((error: unknown): ToWorker => ({ reply, error })));
  }

  /**
   * Records that a worker ended, for example because it ran out of memory. Other workers continue,
   * and a new one replaces it.
   */
  #failed(worker: Worker, error: Error): void {
    this.#all.delete(worker);
    const job = this.#ended(worker);
    if (job === undefined) return;
    this.#host.found(job.path, { kind: 'failure', error });
    job.end();
  }

  #ended(worker: Worker): Job | undefined {
    const job = this.#jobs.get(worker);
    this.#jobs.delete(worker);
    return job;
  }
}
