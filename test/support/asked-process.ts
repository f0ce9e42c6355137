import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const src = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'src');

/** An answer of a process: a value, or the code and the message of the thrown error. */
export interface Answer {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
}

/** A separate process that executes commands, one at a time. */
export interface AskedProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  ask(ask: string, ...args: readonly unknown[]): Promise<Answer>;
  /** Ends it with a signal, SIGKILL by default. Resolves when it has exited. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Bundles a program into a folder. `contents` imports from `./` as in src/ and defines `answer`: an
 * async function per command, with a list of arguments.
 */
export async function buildProgram(folder: string, name: string, contents: string): Promise<string> {
  const outfile = join(folder, `${name}.mjs`);
  const loop = `
process.on('message', ({ ask, args }) => {
  const fail = (error) => process.send({ code: error.code, message: error.message });
  answer[ask](args).then((value) => process.send({ value }), fail);
});
process.send({ value: 'ready' });`;
  await build({
    stdin: { contents: contents + loop, resolveDir: src },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile,
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'error',
  });
  return outfile;
}

async function nextAnswer(child: ChildProcess): Promise<Answer> {
  const [answer] = await once(child, 'message');
  return answer as Answer;
}

/** Starts a program and waits until it listens. */
export async function startProgram(program: string, options: ForkOptions = {}): Promise<AskedProcess> {
  const child = fork(program, { execArgv: [], ...options });
  await nextAnswer(child);
  return {
    child,
    pid: child.pid ?? 0,
    ask: (ask, ...args) => {
      const answer = nextAnswer(child);
      child.send({ ask, args });
      return answer;
    },
    kill: async (signal = 'SIGKILL') => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
}
