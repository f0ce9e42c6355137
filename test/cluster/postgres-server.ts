import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../support/until.js';
import { freePort } from './free-port.js';

const run = promisify(execFile);

/** The user `nobody`: PostgreSQL does not run as root. */
const UNPRIVILEGED = 65_534;
const isRoot = process.getuid?.() === 0;

/** A program and its arguments, run as a user who is not root. */
const asUser = (program: string, args: readonly string[]): readonly [string, string[]] =>
  isRoot
    ? ['setpriv', [`--reuid=${UNPRIVILEGED}`, `--regid=${UNPRIVILEGED}`, '--clear-groups', program, ...args]]
    : [program, [...args]];

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });

/** Waits until a port accepts connections. Throws if the process that should listen there ends. */
export async function untilListening(port: number, process: ChildProcess): Promise<void> {
  await until(
    async () => process.exitCode ?? process.signalCode ?? (await listens(port)),
    (answer) => answer !== false,
  );
  if (process.exitCode !== null || process.signalCode !== null)
    throw new Error(`the server of port ${port} ended before it listened`);
}

/** The jars of the servers that the tests start; `old` has only a PostgreSQL, which is too old. */
export function serverJars(age: 'new' | 'old' = 'new'): readonly string[] {
  const jars = age === 'old' ? process.env.PALIMPSEST_TEST_OLD_JARS : process.env.PALIMPSEST_TEST_JARS;
  if (jars === undefined) throw new Error('PALIMPSEST_TEST_JARS is not set: run through npm run test:cluster');
  return JSON.parse(jars);
}

/**
 * Starts a server over existing files, as the user that owns them. Returns a function that kills
 * it.
 */
export async function startOver(
  bin: string,
  data: string,
  options: { readonly port: number; readonly settings: readonly string[] },
): Promise<() => Promise<void>> {
  if (isRoot) await run('chown', ['-R', `${UNPRIVILEGED}:${UNPRIVILEGED}`, data]);
  await chmod(data, 0o700);
  const words = [
    '-D',
    data,
    '-k',
    data,
    '-h',
    '127.0.0.1',
    '-p',
    String(options.port),
    '-F',
    ...options.settings.flatMap((one) => ['-c', one]),
  ];
  const [program, args] = asUser(join(bin, 'postgres'), words);
  const server = spawn(program, args, { stdio: 'ignore' });
  await untilListening(options.port, server);
  return async () => {
    const ended = once(server, 'exit');
    server.kill('SIGQUIT');
    await ended;
  };
}

/** A PostgreSQL for one test run. */
export interface PostgresServer {
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** The folder of its files, which only its user may write. */
  readonly dir: string;
  start(): Promise<void>;
  /**
   * Runs statements in one of its databases as a superuser. Kills the server for that and starts it
   * again, so no other client may use it.
   */
  execute(database: string, statements: string): Promise<void>;
  /** Ends it like a power cut of its machine. */
  kill(): Promise<void>;
  /** Stops it and removes its files. */
  remove(): Promise<void>;
}

/** Settings of a new server. */
interface PostgresOptions {
  readonly age?: 'new' | 'old';
  readonly user?: string;
  /** A folder with the programs of an installed PostgreSQL; default: those of the jar. */
  readonly bin?: string | undefined;
  /** Settings of the server, `key=value`, for every start. */
  readonly settings?: readonly string[];
}

/** Unpacks the programs of PostgreSQL into a folder. Returns the folder of the programs to run. */
async function unpack(age: 'new' | 'old', dir: string): Promise<string> {
  const jar = serverJars(age).find((path) => path.includes('embedded-postgres-binaries'));
  if (jar === undefined) throw new Error('there is no jar with the programs of PostgreSQL');
  const programs = join(dir, 'programs');
  await mkdir(programs);
  await run('jar', ['xf', jar], { cwd: programs });
  const { stdout } = await run('find', [programs, '-name', '*.txz']);
  await run('tar', ['xJf', stdout.trim().split('\n')[0] ?? '', '-C', programs]);
  return join(programs, 'bin');
}

/** Makes a server with `databases` and one user, whose password has every awkward character. */
export async function postgresServer(
  databases: readonly string[],
  { age = 'new', user = 'owner', bin: installed, settings = [] }: PostgresOptions = {},
): Promise<PostgresServer> {
  const dir = await mkdtemp(join(tmpdir(), 'palimpsest-pg-'));
  await chmod(dir, 0o755);
  const bin = installed ?? (await unpack(age, dir));
  const password = 'p@ss:w/ord%20?#&=é';
  const data = join(dir, 'data');
  const passwordFile = join(dir, 'password');
  await writeFile(passwordFile, password);
  await mkdir(data);
  if (isRoot) for (const path of [dir, data, passwordFile]) await chown(path, UNPRIVILEGED, UNPRIVILEGED);
  const port = await freePort();
  const initdb = asUser(join(bin, 'initdb'), [
    '-D',
    data,
    '-U',
    user,
    '-A',
    'scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--no-sync',
    '--no-locale',
    '-E',
    'UTF8',
  ]);
  await run(initdb[0], initdb[1]);
  let server: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    // SIGQUIT ends all of its processes at once, without any notice.
    server.kill('SIGQUIT');
    await ended;
  };
  /**
   * The server's single-user mode reads a statement per line from its standard input, without a
   * password.
   */
  const single = async (database: string, statements: string): Promise<void> => {
    const [program, args] = asUser(join(bin, 'postgres'), ['--single', '-D', data, database]);
    const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.stdin.end(`${statements}\n`);
    const [code] = await once(child, 'close');
    if (code !== 0 || said.includes('ERROR')) throw new Error(`${statements}: ${said}`);
  };
  for (const name of databases) await single('postgres', `CREATE DATABASE "${name}"`);
  const flags = settings.flatMap((one) => ['-c', one]);
  const start = async (): Promise<void> => {
    const [program, args] = asUser(join(bin, 'postgres'), [
      '-D',
      data,
      '-k',
      dir,
      '-h',
      '127.0.0.1',
      '-p',
      String(port),
      '-F',
      ...flags,
    ]);
    server = spawn(program, args, { stdio: 'ignore' });
    await untilListening(port, server);
  };
  await start();
  const execute = async (database: string, statements: string): Promise<void> => {
    await kill();
    await single(database, statements);
    await start();
  };
  const remove = async (): Promise<void> => {
    await kill();
    await rm(dir, { recursive: true, force: true });
  };
  return { port, user, password, dir, start, execute, kill, remove };
}
