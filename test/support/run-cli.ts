import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const cli = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'dist', 'cli.js');

/** The result of a run of the built command line program. */
export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the built `palimpsest`, or that of another build. Adds `env` to this process's environment.
 * An undefined value removes a variable.
 */
export function startCli(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = {},
  program: string = cli,
): { readonly child: ChildProcess; readonly result: Promise<CliResult> } {
  const merged: NodeJS.ProcessEnv = { ...process.env, NODE_OPTIONS: undefined, ...env };
  const child = spawn(process.execPath, [program, ...args], { env: merged, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const result = new Promise<CliResult>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
  return { child, result };
}

/** Runs the built `palimpsest` as `startCli` starts it. */
export const runCli = (...run: Parameters<typeof startCli>): Promise<CliResult> => startCli(...run).result;
