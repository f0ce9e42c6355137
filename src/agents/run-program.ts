import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import type { Environment } from '../host/environment.js';
import { OWN_GROUP, signalGroup } from '../process/process-group.js';
import { spawnedAs } from '../process/program-files.js';
import { withinLimit } from '../process/within-limit.js';
import type { ServerCommand } from './agent.js';

/** The result of running a program. */
export interface ProgramRun {
  /** The exit code. Undefined if the program did not start or was stopped. */
  readonly code: number | undefined;
  /** The output of both streams without colours, as far as it was read. */
  readonly output: string;
  readonly isLate: boolean;
}

const MOST_CHARS = 1_048_576;
/**
 * Maximum wait for the end of the output, in milliseconds. A process that the program left behind
 * may keep the output open.
 */
const DRAIN_MS = 1_000;

/**
 * Starts a program. Undefined if the system rejects the call, for example because of a NUL
 * character.
 */
function started(program: string, args: readonly string[], options: SpawnOptions): ChildProcess | undefined {
  const how = spawnedAs(program, args);
  if (how === undefined) return undefined;
  try {
    // The program gets its own process group, so that all processes that it starts can be ended
    // with it.
    return spawn(how.command, how.args, { ...options, ...how.options, ...OWN_GROUP });
  } catch {
    return undefined;
  }
}

/** Ends a program and the processes that it started. */
function endGroup(child: ChildProcess): void {
  if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
}

/** Lets this process exit even if another process keeps a child's streams open. */
function release(child: ChildProcess): void {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
  child.unref();
}

/**
 * Runs an agent's program without input. Stops it, and the processes that it started, after the
 * time limit or a megabyte of output. Never rejects.
 */
export function runProgram(
  program: string,
  args: readonly string[],
  options: { readonly env: Environment; readonly cwd: string; readonly limitMs: number },
): Promise<ProgramRun> {
  const { env, cwd, limitMs } = options;
  const child = started(program, args, {
    env: { ...env, NO_COLOR: '1' },
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child === undefined) return Promise.resolve({ code: undefined, output: '', isLate: false });
  return new Promise((resolve) => {
    const texts: [string, string] = ['', ''];
    const timers: NodeJS.Timeout[] = [];
    const end = (code: number | undefined, isLate: boolean): void => {
      for (const timer of timers) clearTimeout(timer);
      release(child);
      resolve({ code, output: stripVTControlCharacters(texts.join('')), isLate });
    };
    const stop = (isLate: boolean): void => {
      endGroup(child);
      end(undefined, isLate);
    };
    for (const [nth, stream] of [child.stdout, child.stderr].entries())
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        texts[nth as 0 | 1] += chunk;
        if (texts[0].length + texts[1].length > MOST_CHARS) stop(false);
      });
    timers.push(setTimeout(stop, limitMs, true));
    child.once('error', () => end(undefined, false));
    child.once('exit', (code) => timers.push(setTimeout(end, DRAIN_MS, code ?? undefined, false)));
    child.once('close', (code) => end(code ?? undefined, false));
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
export async function answersAsServer(
  { command, args }: ServerCommand,
  { env, cwd }: { readonly env: Environment; readonly cwd: string },
): Promise<boolean> {
  const child = started(command, args, { env: { ...env }, cwd, stdio: ['pipe', 'pipe', 'ignore'] });
  if (child === undefined) return false;
  child.stdin?.on('error', () => undefined);
  const answered = new Promise<boolean>((resolve) => {
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('\n')) resolve(/"serverInfo":\{[^}]*"name":"palimpsest"/.test(text));
      else if (text.length > MOST_CHARS) resolve(false);
    });
    child.once('error', () => resolve(false));
    child.once('close', () => resolve(false));
  });
  child.stdin?.write(`${JSON.stringify(ASKED)}\n`);
  const answers = await withinLimit(answered, { ms: ANSWER_MS, keepsAlive: true }, () => false);
  // A server ends when its input ends.
  child.stdin?.end();
  const stop = (): void => {
    endGroup(child);
    release(child);
  };
  if (!answers) stop();
  else if (child.exitCode === null && child.signalCode === null) {
    const timer = setTimeout(stop, ANSWER_MS);
    child.once('exit', () => {
      clearTimeout(timer);
      release(child);
    });
  }
  return answers;
}
