import { execFile, spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import type { Environment } from '../host/environment.js';
import { withinLimit } from '../process/within-limit.js';
import { type ServerCommand, type Surroundings, WORKSPACE } from './agent.js';

/** The end of a program: its whole output, or nothing if it could not run or took too long. */
export interface ProgramRun {
  /** The exit code; undefined if the program did not start or was stopped. */
  readonly code: number | undefined;
  /** Both streams, without colours. */
  readonly output: string;
  readonly isLate: boolean;
}

const MOST_BYTES = 1_048_576;

/** Runs an agent's program without input. It is stopped after the limit. Never rejects. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { readonly env: Environment; readonly cwd: string; readonly limitMs: number },
): Promise<ProgramRun> {
  const { env, cwd, limitMs } = options;
  return new Promise((resolve) => {
    const child = execFile(
      program,
      [...args],
      {
        env: { ...env, NO_COLOR: '1' },
        cwd,
        timeout: limitMs,
        killSignal: 'SIGKILL',
        maxBuffer: MOST_BYTES,
        // Windows installs agents as command files, which only a shell runs.
        shell: /\.(?:cmd|bat)$/i.test(program),
      },
      (error, stdout, stderr) => {
        const isLate = error?.killed === true;
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : undefined;
        resolve({ code, output: stripVTControlCharacters(`${stdout}${stderr}`), isLate });
      },
    );
    child.stdin?.end();
  });
}

const ANSWER_MS = 15_000;
const ASKED = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'palimpsest-doctor', version: '1' } },
};

/**
 * Starts the server of an agent's settings as the agent would, and waits for its first answer.
 * Returns whether it answered as Palimpsest. Never rejects.
 */
export async function answersAsServer({ command, args }: ServerCommand, { env, cwd }: Surroundings): Promise<boolean> {
  const child = spawn(
    command,
    args.map((arg) => arg.replace(WORKSPACE, cwd)),
    { env: { ...env }, cwd, stdio: ['pipe', 'pipe', 'ignore'] },
  );
  child.stdin.on('error', () => undefined);
  const answered = new Promise<boolean>((resolve) => {
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('\n')) resolve(/"serverInfo":\{[^}]*"name":"palimpsest"/.test(text));
    });
    child.once('error', () => resolve(false));
    child.once('close', () => resolve(false));
  });
  child.stdin.write(`${JSON.stringify(ASKED)}\n`);
  const answers = await withinLimit(answered, { ms: ANSWER_MS, keepsAlive: true }, () => false);
  // A server ends with its input.
  child.stdin.end();
  if (!answers) child.kill('SIGKILL');
  return answers;
}
