import { spawn } from 'node:child_process';
import { spawnedAs } from '../process/program-files.js';
import { SYSTEM } from '../process/system.js';
import { systemCode } from '../process/system-error.js';
import { defined } from '../values/defined.js';
import { NodeError, throwIfAborted } from './errors.js';

/** The exit of a command with its last output (both streams, in order of arrival). */
export interface ProcessResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
}

const KEPT_OUTPUT = 64_000;

/**
 * Runs a command to its end, without a shell and without input. A failing exit code is a result,
 * not an error. Resolves to undefined if the command does not exist. Throws NodeError `aborted`
 * when the signal fires, `build-failed` after the time limit.
 */
export async function runProcess(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly limitMs: number; readonly signal?: AbortSignal | undefined },
): Promise<ProcessResult | undefined> {
  throwIfAborted(options.signal);
  const how = spawnedAs(command, args);
  if (how === undefined) return undefined;
  return new Promise((resolve, reject) => {
    const child = spawn(how.command, how.args, {
      ...how.options,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...defined({ cwd: options.cwd ?? SYSTEM.searchedFolder }),
    });
    let output = '';
    const keep = (chunk: string): void => {
      output = (output + chunk).slice(-KEPT_OUTPUT);
    };
    child.stdout.setEncoding('utf8').on('data', keep);
    child.stderr.setEncoding('utf8').on('data', keep);
    let gaveUp: NodeError | undefined;
    const giveUp = (error: NodeError): void => {
      gaveUp = error;
      child.kill('SIGKILL');
    };
    const onAbort = (): void =>
      giveUp(new NodeError('aborted', `${command} was cancelled by the caller.`, { cause: options.signal?.reason }));
    options.signal?.addEventListener('abort', onAbort, { once: true });
    const timer = setTimeout(() => {
      giveUp(
        new NodeError(
          'build-failed',
          `${command} did not end within ${Math.round(options.limitMs / 1000)} s. ` +
            `It said last:\n${lastLines(output, 10)}`,
        ),
      );
    }, options.limitMs);
    const settle = (): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', onAbort);
    };
    child.on('error', (error) => {
      settle();
      if (systemCode(error) === 'ENOENT') resolve(undefined);
      else
        reject(
          new NodeError(
            'build-failed',
            `${command} could not be run: ${error.message}. Check that it may be executed.`,
            { cause: error },
          ),
        );
    });
    child.on('close', (code, signal) => {
      settle();
      if (gaveUp === undefined) resolve({ code, signal, output });
      else reject(gaveUp);
    });
  });
}

/** Returns the last `count` lines of a text without blank ones. */
export function lastLines(text: string, count: number): string {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-count)
    .join('\n');
}
