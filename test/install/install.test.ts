import type { ChildProcess } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { until } from '../support/until.js';
import { BareHome, type Ended } from './bare-home.js';
import { OWN, tarball } from './packages.js';
import { Times } from './times.js';

/** The longest waits of a user, milliseconds. */
const FIRST_CONTEXT_MS = 10_000;
const LATER_START_MS = 3_000;

const times = new Times();
let user: BareHome;
const data = (...parts: readonly string[]): string => join(user.home, '.local/share/palimpsest', ...parts);
const cache = (...parts: readonly string[]): string => join(user.home, '.cache/palimpsest', ...parts);

/** Returns the processor time of the running node, milliseconds. */
async function nodeCpuMs(): Promise<number> {
  const { jvm } = JSON.parse(await readFile(data('node.json'), 'utf8'));
  const fields = (await readFile(`/proc/${jvm.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Returns the state of a process. Z means that it ended and its parent has not noticed yet. */
const stateOf = (pid: number): Promise<string> =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (text) => text.split(') ')[1]?.[0] ?? '',
    () => 'ended',
  );

/**
 * Expects a wait within a limit. Beside other load on this machine, it compares the processor time
 * of the node instead of the wall time.
 */
async function expectWithin(wallMs: number, limitMs: number): Promise<void> {
  const isQuiet = (loadavg()[0] ?? 0) < availableParallelism();
  expect(isQuiet ? wallMs : await nodeCpuMs()).toBeLessThanOrEqual(limitMs);
}

/** Connects to the installed `palimpsest mcp`. */
async function connect(): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const command = join(user.prefix, 'bin', 'palimpsest');
  const env = { ...user.env, PATH: user.path };
  await client.connect(new StdioClientTransport({ command, args: ['mcp', '--root', '.'], env, cwd: user.home }));
  return client;
}

/** Waits for the last session to reach the database, and assembles its context. */
async function lastContext(): Promise<Ended> {
  const { stdout } = await until(
    () => user.palimpsest(['sessions', '--json']),
    ({ code, stdout: found }) => code === 0 && JSON.parse(found).sessions.length > 0,
  );
  const id = JSON.parse(stdout).sessions[0].id;
  return user.palimpsest(['context', id, '--assemble']);
}

const textOf = (answer: unknown): string => JSON.stringify((answer as { readonly content: unknown }).content);

beforeAll(async () => {
  user = await BareHome.make();
  await times.of('npm install -g', () => user.install(tarball(), tarball(OWN)));
  await writeFile(join(user.home, 'a.ts'), 'export const answer = 42;\n');
});
afterAll(async () => {
  await user.palimpsest(['node', 'stop']).catch(() => undefined);
  await user.remove();
});

describe('an installation without Java, Maven, compiler and network', () => {
  test('consists of two packages', async () => {
    const modules = join(user.prefix, 'lib/node_modules');
    expect((await readdir(modules)).sort()).toEqual(['@palimpsest', 'palimpsest']);
    expect(await readdir(join(modules, '@palimpsest'))).toEqual([`node-${OWN}`]);
    expect(await readdir(join(modules, 'palimpsest'))).not.toContain('node_modules');
  });

  test('names the runtime of the package in doctor', async () => {
    const { stdout } = await user.palimpsest(['doctor']);
    expect(stdout).toMatch(new RegExp(`^java {6}25 of @palimpsest/node-${OWN} \\S+ at ${user.prefix}\\S+java$`, 'm'));
    const { java } = JSON.parse((await user.palimpsest(['doctor', '--json'])).stdout);
    expect(java).toMatchObject({ major: 25, package: expect.stringContaining(`@palimpsest/node-${OWN} `) });
  });

  test('answers over MCP and shows the first context within ten seconds', async () => {
    const from = performance.now();
    const client = await connect();
    try {
      expect(textOf(await client.callTool({ name: 'read', arguments: { path: 'a.ts' } }))).toContain('answer = 42');
      const found = await client.callTool({ name: 'grep', arguments: { pattern: 'answer' } });
      expect(textOf(found)).toContain('a.ts');
      const context = await lastContext();
      const ms = performance.now() - from;
      expect(context.stdout).toContain('answer = 42');
      times.add('from an empty home to the first context', ms);
      times.add('processor time of the node until then', await nodeCpuMs());
      await expectWithin(ms, FIRST_CONTEXT_MS);
    } finally {
      await client.close();
    }
  });

  test('starts again within three seconds, once it has made its cache in the background', async () => {
    const key = (await readdir(cache())).find((name) => /^node-[0-9a-f]{16}$/.test(name)) ?? '';
    const made = await until(
      () => readFile(cache(key, 'installation.json'), 'utf8').catch(() => undefined),
      (text) => text !== undefined,
    );
    expect(JSON.parse(made ?? '')).toEqual({ archive: true });
    expect((await user.palimpsest(['node', 'stop'])).code).toBe(0);
    const started = JSON.parse((await user.palimpsest(['node', 'start', '--json'])).stdout);
    expect(started).toMatchObject({ started: true });
    const { jvm } = JSON.parse(await readFile(data('node.json'), 'utf8'));
    expect(await readFile(`/proc/${jvm.pid}/cmdline`, 'utf8')).toContain(`-XX:AOTCache=${cache(key, 'front.aot')}`);
    expect(await readFile(data('logs/node.log'), 'utf8')).not.toMatch(/\[(?:error|warning)\]\[(?:cds|aot)/);
    times.add('a later start of the node', started.ms);
    times.add('processor time of the node until then', await nodeCpuMs());
    await expectWithin(started.ms, LATER_START_MS);
  });

  test('runs by npx from the tarballs', async () => {
    const from = ['--yes', `--package=${tarball()}`, `--package=${tarball(OWN)}`];
    const npx = (...args: readonly string[]) =>
      user.run(process.execPath, [user.npxCli, '--offline', ...from, 'palimpsest', ...args], {
        PATH: user.env.PATH ?? '',
      });
    expect((await npx('doctor')).stdout).toContain(`of @palimpsest/node-${OWN} `);
  });
});

describe('palimpsest uninstall', () => {
  /** The files of a folder, by default the home, that are neither npm's nor the user's own. */
  const filesIn = async (folder = user.home): Promise<readonly string[]> => {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((path) => !path.startsWith(join(user.home, '.npm')) && path !== join(user.home, 'a.ts'));
  };

  const startGateway = async (): Promise<ChildProcess> => {
    const child = user.start(join(user.prefix, 'bin', 'palimpsest'), ['gateway', '--port', '0']);
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error('palimpsest gateway has ended')));
      child.stdout?.once('data', () => resolve());
    });
    return child;
  };

  test('stops the node, servers, watcher and gateway, and leaves only the folders that it lists', async () => {
    const client = await connect();
    await client.callTool({ name: 'read', arguments: { path: 'a.ts' } });
    const { jvm } = JSON.parse(await readFile(data('node.json'), 'utf8'));
    const settings = join(user.home, '.gemini/settings.json');
    await user.palimpsest(['setup', 'claude', 'codex', 'gemini', '--yes']);
    expect(await readFile(settings, 'utf8')).toContain('palimpsest-hook');
    const watch = JSON.parse((await user.palimpsest(['watch', '--background', '--json'])).stdout);
    const gateway = await startGateway();
    const closed = new Promise<void>((resolve) => {
      client.onclose = resolve;
    });
    const { code, stdout } = await user.palimpsest(['uninstall']);
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Stopped the node and 3 other'),
    });
    await closed;
    for (const path of ['.claude.json', '.claude/settings.json', '.codex/config.toml', '.codex/hooks.json'])
      expect(stdout).toContain(`Undid the change of ${join(user.home, path)}.`);
    expect(stdout).toContain(`Undid the change of ${settings}.`);
    for (const pid of [jvm.pid, watch.pid, gateway.pid]) expect(await stateOf(pid)).toMatch(/ended|Z/);
    const listed = [...stdout.matchAll(/^ {2}(\/.+?) {2}[\d.]+ [kM]B/gm)].map(([, path]) => path ?? '');
    expect(listed).toEqual([data(), cache()]);
    const files = await filesIn();
    expect(files.length).toBeGreaterThan(10);
    expect(files.filter((path) => !listed.some((folder) => path.startsWith(`${folder}/`)))).toEqual([]);
  });

  test('leaves hooks that start nothing, for agents that still run', async () => {
    const hook = await user.run(data('hooks', 'palimpsest-hook'), ['claude-code', data(), '200']);
    expect({ code: hook.code, said: hook.stdout + hook.stderr }).toEqual({ code: 0, said: '' });
    expect(await readFile(data('hooks', 'unreached'), 'utf8')).toContain('nothing listens');
    await expect(readFile(data('hooks', 'starting'))).rejects.toThrow(/ENOENT/);
    expect(JSON.parse((await user.palimpsest(['watch', '--status', '--json'])).stdout)).toMatchObject({
      running: false,
    });
  });

  test('removes these folders with --data, but not the files of others in them', async () => {
    await writeFile(data('notes.txt'), 'mine');
    const { code, stdout } = await user.palimpsest(['uninstall', '--data']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^These folders are removed:\n {2}\S+palimpsest {2}/m);
    expect(stdout).toContain(`settings that were not restored:\n  ${data('notes.txt')}`);
    expect(await filesIn()).toEqual([data('notes.txt')]);
  });

  test('finds nothing the second time but what stayed, and npm removes the program', async () => {
    const { stdout } = await user.palimpsest(['uninstall', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ stopped: [], node: false, leftovers: [{ path: data(), kind: 'data' }] });
    await times.print(user);
    const { stdout: said } = await user.palimpsest(['uninstall']);
    const named = /^Now remove the program: npm uninstall -g (.+)$/m.exec(said)?.[1]?.split(' ') ?? [];
    expect(named).toEqual(['palimpsest', `@palimpsest/node-${OWN}`]);
    await user.npm(['uninstall', '-g', '--prefix', user.prefix, ...named]);
    expect(await readdir(join(user.prefix, 'bin'))).toEqual([]);
    expect(await filesIn(join(user.prefix, 'lib'))).toEqual([]);
  });
});
