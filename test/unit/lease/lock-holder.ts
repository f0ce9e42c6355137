import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const src = join(dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url))))), 'src');

/** What the process does: takes one lock, then answers questions about it. */
const PROGRAM = `
import { acquireSessionLock } from './lease/session-lock.js';
let lock;
const answer = {
  acquire: async ([dataDir, session, options]) => { lock = await acquireSessionLock(dataDir, session, options); return lock.token; },
  ours: async () => lock.isStillOurs(),
  release: async () => lock.release(),
};
process.on('message', ({ ask, args }) => {
  answer[ask](args).then((value) => process.send({ value }), (error) => process.send({ code: error.code, message: error.message }));
});
process.send({ value: 'ready' });
`;

export interface Answer {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
}

/** A process of its own that can hold a session's lock. */
export interface LockHolder {
  readonly pid: number;
  ask(ask: 'acquire' | 'ours' | 'release', ...args: readonly unknown[]): Promise<Answer>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Bundles the program of the processes into a folder. */
export async function buildLockHolder(folder: string): Promise<string> {
  const outfile = join(folder, 'lock-holder.mjs');
  await build({
    stdin: { contents: PROGRAM, resolveDir: src },
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

/** Starts such a process and waits until it listens. */
export async function startLockHolder(program: string): Promise<LockHolder> {
  const child = fork(program, { execArgv: [] });
  await nextAnswer(child);
  return {
    pid: child.pid ?? 0,
    ask: (ask, ...args) => {
      const answer = nextAnswer(child);
      child.send({ ask, args });
      return answer;
    },
    kill: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
}
