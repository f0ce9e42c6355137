import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { identifyProcess, type ProcessIdentity } from '../process/process-identity.js';
import type { FrontExit } from './front-exit.js';
import { frontArguments, type LaunchPlan } from './launch.js';
import type { LogFile } from './log-file.js';

/** The one line with which the JVM says that it answers. */
const readyLineSchema = z.object({
  ready: z.literal(true),
  pid: z.int(),
  socket: z.string().nullable(),
  port: z.int().nullable(),
  version: z.string(),
});
/** What a front prints, as one line of JSON, when it is ready. */
export type ReadyLine = Readonly<z.infer<typeof readyLineSchema>>;

/** Reads the ready line; undefined for any other line. */
export function parseReadyLine(line: string): ReadyLine | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return readyLineSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}

/** A running JVM. */
export interface FrontProcess {
  /** Undefined when it was gone before it could be looked at. */
  readonly identity: Promise<ProcessIdentity | undefined>;
  /** Resolves when it ended; never rejects. */
  readonly ended: Promise<FrontExit>;
  kill(signal: NodeJS.Signals): void;
}

const TAIL_LINES = 60;

/** Starts the JVM of a plan, its output going to the log; `onReady` is called when it says it is ready. */
export function startFront(
  plan: LaunchPlan,
  options: { readonly env: NodeJS.ProcessEnv; readonly log: LogFile; onReady(line: ReadyLine): void },
): FrontProcess {
  const child = spawn(plan.java, [...frontArguments(plan)], {
    cwd: plan.dataDir,
    stdio: ['ignore', 'pipe', 'pipe'],
    // RocksDB's memory spreads over one arena for each thread otherwise.
    env: { ...options.env, MALLOC_ARENA_MAX: '2' },
  });
  const tail: string[] = [];
  const note = (line: string): void => {
    options.log.write(`${line}\n`);
    tail.push(line);
    if (tail.length > TAIL_LINES) tail.shift();
  };
  createInterface({ input: child.stderr }).on('line', note);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const ready = parseReadyLine(line);
    if (ready === undefined) note(line);
    else options.onReady(ready);
  });
  const ended = new Promise<FrontExit>((resolve) => {
    child.on('error', (error) => resolve({ code: 127, signal: null, tail: [...tail, error.message].join('\n') }));
    // `close` comes after the last line, `exit` might not.
    child.on('close', (code, signal) => resolve({ code, signal, tail: tail.join('\n') }));
  });
  return {
    identity: child.pid === undefined ? Promise.resolve(undefined) : identifyProcess(child.pid),
    ended,
    kill: (signal) => void child.kill(signal),
  };
}
