import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Line, readLines } from './acknowledged.js';
import type { WorkloadPlan } from './workload-plan.js';

/** One process of the workload, from its start to its end. */
export class Service {
  readonly plan: WorkloadPlan;
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #open: Promise<unknown>;
  #stderr = '';

  constructor(script: string, plan: WorkloadPlan) {
    this.plan = plan;
    this.#child = spawn(process.execPath, ['--enable-source-maps', script, JSON.stringify(plan)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#ended = once(this.#child, 'close');
    this.#open =
      this.#child.stdout === null ? this.#ended : Promise.race([once(this.#child.stdout, 'data'), this.#ended]);
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Waits until its sessions are open or it has ended, up to a time limit. */
  async opened(limitMs: number): Promise<void> {
    const limit = new AbortController();
    await Promise.race([this.#open, delay(limitMs, undefined, { signal: limit.signal }).catch(() => undefined)]);
    limit.abort();
  }

  /** False if it has already ended. */
  kill(): boolean {
    return this.isRunning && this.#child.kill('SIGKILL');
  }

  /** Suspends it like a machine without time for it, or resumes it. */
  hold(isHeld: boolean): void {
    if (this.isRunning) this.#child.kill(isHeld ? 'SIGSTOP' : 'SIGCONT');
  }

  /** Waits for its end and returns what it reported. */
  async end(): Promise<{ readonly lines: readonly Line[]; readonly code: number | null; readonly stderr: string }> {
    await this.#ended;
    return { lines: readLines(this.plan.linesFile), code: this.#child.exitCode, stderr: this.#stderr };
  }
}
