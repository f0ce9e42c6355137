import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { platformPackageFolder } from '../../process/platform-package.js';
import { SYSTEM } from '../../process/system.js';
import { SourceError } from '../access/errors.js';

/** A run of a search program. Records are passed on as they arrive. */
export interface ProgramRun {
  readonly binary: string;
  readonly args: readonly string[];
  /** Descriptors that it inherits, numbered from 3. */
  readonly descriptors?: readonly number[];
  /** The byte that ends a record. */
  readonly separator: number;
  /** Takes one record; returning false stops the program. */
  take(record: Buffer): boolean;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The result of a run. */
export interface ProgramOutcome {
  readonly ended: 'exited' | 'stopped' | 'timed-out';
  readonly exitCode: number | null;
  readonly stderr: string;
  /** Number of records skipped because of their length. */
  readonly oversize: number;
}

const LONGEST_RECORD = 4 * 1024 * 1024;
const MOST_STDERR = 8192;

let located: Promise<string | undefined> | undefined;

/**
 * Returns the ripgrep program: that of this platform's package, that of the npm package, or the one
 * on the PATH. `undefined` if there is none. Looks for it only once.
 */
export function ripgrepPath(): Promise<string | undefined> {
  located ??= locate();
  return located;
}

async function locate(): Promise<string | undefined> {
  const packaged = platformPackageFolder();
  if (packaged !== undefined) {
    const program = join(packaged, 'bin', `rg${SYSTEM.programEnding}`);
    if (await answers(program)) return program;
  }
  try {
    const { rgPath } = await import('@vscode/ripgrep');
    if (await answers(rgPath)) return rgPath;
  } catch {
    // Not installed for this platform.
  }
  return (await answers('rg')) ? 'rg' : undefined;
}

function answers(binary: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(binary, ['--version'], { cwd: SYSTEM.searchedFolder, stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });
}

/** Splits a byte stream into records of bounded length. */
class RecordCutter {
  #parts: Buffer[] = [];
  #length = 0;
  oversize = 0;

  /** Passes completed records to `take`; returns false once one was refused. */
  push(bytes: Buffer, separator: number, take: (record: Buffer) => boolean): boolean {
    let from = 0;
    for (let end = bytes.indexOf(separator); end >= 0; end = bytes.indexOf(separator, from)) {
      this.#keep(bytes.subarray(from, end));
      from = end + 1;
      const record = this.#length > LONGEST_RECORD ? undefined : Buffer.concat(this.#parts);
      this.#parts = [];
      this.#length = 0;
      if (record === undefined) this.oversize += 1;
      else if (!take(record)) return false;
    }
    this.#keep(bytes.subarray(from));
    return true;
  }

  #keep(bytes: Buffer): void {
    this.#length += bytes.length;
    if (this.#length > LONGEST_RECORD) this.#parts = [];
    else this.#parts.push(bytes);
  }
}

/**
 * Runs a search program without a shell. It is killed on abort (which rejects), at the time limit,
 * and when `take` refuses a record.
 */
export async function runProgram(run: ProgramRun): Promise<ProgramOutcome> {
  run.signal?.throwIfAborted();
  if (run.timeoutMs <= 0) return { ended: 'timed-out', exitCode: null, stderr: '', oversize: 0 };
  return new Promise((resolve, reject) => {
    const child = spawn(run.binary, [...run.args], {
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe', ...(run.descriptors ?? [])],
    });
    const cutter = new RecordCutter();
    let ended: ProgramOutcome['ended'] = 'exited';
    let failure: unknown;
    let stderr = '';
    const stop = (reason: ProgramOutcome['ended']): void => {
      if (ended === 'exited') ended = reason;
      child.kill('SIGKILL');
    };
    const abort = (): void => stop('stopped');
    const timer = setTimeout(() => stop('timed-out'), run.timeoutMs);
    run.signal?.addEventListener('abort', abort, { once: true });
    child.stdout?.on('data', (bytes: Buffer) => {
      if (ended !== 'exited') return;
      try {
        if (!cutter.push(bytes, run.separator, run.take)) stop('stopped');
      } catch (error) {
        failure = error;
        stop('stopped');
      }
    });
    child.stderr?.on('data', (bytes: Buffer) => {
      if (stderr.length < MOST_STDERR) stderr += bytes.toString('utf8');
    });
    child.once('error', (error) => {
      failure = new SourceError('io', `the search program could not be started: ${error.message}`, {
        path: run.binary,
        cause: error,
      });
    });
    child.once('close', (exitCode) => {
      clearTimeout(timer);
      run.signal?.removeEventListener('abort', abort);
      if (run.signal?.aborted) reject(run.signal.reason);
      else if (failure !== undefined) reject(failure);
      else resolve({ ended, exitCode, stderr, oversize: cutter.oversize });
    });
  });
}
