import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { ensureInstallation, type Installation } from '../../src/node/install.js';
import { findJava, type Java } from '../../src/node/java.js';
import { commonJvmFlags } from '../../src/node/launch.js';

const frontDir = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), 'xtdb');

/** The configurations shipped with the front. */
export const CONFIGS = {
  memory: join(frontDir, 'memory.edn'),
  rocksdb: join(frontDir, 'xtdb.edn'),
  postgres: join(frontDir, 'shared', 'postgres.edn'),
  kafka: join(frontDir, 'shared', 'kafka.edn'),
} as const;

/** The line that a front prints when it is ready. */
export interface ReadyLine {
  readonly ready: true;
  readonly pid: number;
  readonly socket: string | null;
  readonly port: number | null;
  readonly version: string;
}

/** The exit of a front's process. */
export interface FrontEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A front's process from its start on. */
export interface FrontRun {
  readonly process: ChildProcess;
  /** Undefined if it ended before it was ready. */
  readonly ready: Promise<ReadyLine | undefined>;
  readonly ended: Promise<FrontEnd>;
}

/**
 * Returns the front as built for this machine, and its Java. With `isShared` it is the front for a
 * shared log.
 */
export async function builtFront(isShared = false): Promise<BuiltFront> {
  const front = built.get(isShared) ?? build(isShared);
  built.set(isShared, front);
  return front;
}

interface BuiltFront {
  readonly java: Java;
  readonly installation: Installation;
}

const built = new Map<boolean, Promise<BuiltFront>>();

async function build(isShared: boolean): Promise<BuiltFront> {
  const java = await findJava({});
  const cacheHome = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  const installation = await ensureInstallation({
    java,
    frontDir,
    isShared,
    memoryConfig: CONFIGS.memory,
    cacheDir: join(cacheHome, 'palimpsest'),
  });
  return { java, installation };
}

/**
 * Returns the program and its arguments that start the front with these flags, compiled as in the
 * service.
 */
export async function frontCommand(
  flags: readonly string[],
  jvmFlags: readonly string[] = [],
): Promise<readonly [string, ...string[]]> {
  const { java, installation } = await builtFront(flags.includes('--settings'));
  return [
    java.command,
    ...commonJvmFlags(java.major),
    '-XX:TieredStopAtLevel=1',
    '-Xmx384m',
    '-XX:+ExitOnOutOfMemoryError',
    ...(installation.archive === null ? [] : ['-Xshare:auto', `-XX:SharedArchiveFile=${installation.archive}`]),
    ...jvmFlags,
    '-cp',
    installation.jars.join(delimiter),
    'clojure.main',
    '-m',
    'front.main',
    ...flags,
  ];
}

/** Starts the front with these flags. */
export async function runFront(flags: readonly string[], jvmFlags: readonly string[] = []): Promise<FrontRun> {
  // XTDB's libraries unpack themselves into the temporary folder. Two concurrent processes would
  // find half a library.
  const scratch = await mkdtemp(join(tmpdir(), 'front-tmp-'));
  return runCommand(await frontCommand(flags, [...jvmFlags, `-Djava.io.tmpdir=${scratch}`]), { scratch });
}

/** Starts a front by its whole command. Removes its temporary folder after its end. */
export function runCommand(
  [command, ...args]: readonly [string, ...string[]],
  {
    scratch,
    env = { MALLOC_ARENA_MAX: '2' },
  }: { readonly scratch: string; readonly env?: Readonly<Record<string, string>> },
): FrontRun {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  let stdout = '';
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    stderr += piece;
  });
  const ready = new Promise<ReadyLine | undefined>((resolve) => {
    createInterface({ input: child.stdout })
      .on('line', (line) => {
        stdout += `${line}\n`;
        if (line.startsWith('{"ready":true')) resolve(JSON.parse(line));
      })
      .on('close', () => resolve(undefined));
  });
  const ended = new Promise<FrontEnd>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      rm(scratch, { recursive: true, force: true }).then(() => resolve({ code, stdout, stderr }), reject);
    });
  });
  return { process: child, ready, ended };
}

/** Creates a folder for its user only, with a path short enough for a socket. */
export async function privateFolder(): Promise<{ readonly dir: string; readonly remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'front-'));
  await chmod(dir, 0o700);
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** A front that answers. */
export interface RunningFront {
  readonly ready: ReadyLine;
  readonly run: FrontRun;
  /** Asks it to end, and waits until it has. */
  readonly stop: () => Promise<FrontEnd>;
}

/** Starts a front and waits until it is ready. Throws with its output if it fails. */
export async function startFront(flags: readonly string[], jvmFlags: readonly string[] = []): Promise<RunningFront> {
  const run = await runFront(flags, jvmFlags);
  const ready = await run.ready;
  if (ready === undefined) {
    const { code, stderr } = await run.ended;
    throw new Error(`the front ended with ${code} before it was ready: ${stderr}`);
  }
  const stop = async (): Promise<FrontEnd> => {
    run.process.kill('SIGTERM');
    return run.ended;
  };
  return { ready, run, stop };
}

/** Runs a front that is expected to fail. Returns its exit code and last line. */
export async function failToStart(flags: readonly string[]): Promise<readonly [number | null, string]> {
  const run = await runFront(flags);
  if ((await run.ready) !== undefined) throw new Error(`the front started with ${flags.join(' ')}`);
  const { code, stderr } = await run.ended;
  return [
    code,
    stderr
      .trimEnd()
      .split('\n')
      .find((line) => line.startsWith('front: ')) ?? stderr,
  ];
}
