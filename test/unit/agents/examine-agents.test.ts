import { chmod, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Surroundings, WORKSPACE } from '../../../src/agents/agent.js';
import { AGENTS } from '../../../src/agents/agent-table.js';
import { type ExaminedAgent, examineAgents } from '../../../src/agents/examine-agents.js';
import { findProgram } from '../../../src/agents/installed.js';
import { hashOf, type KeptChange, keepChange } from '../../../src/agents/kept-changes.js';
import { runProgram } from '../../../src/agents/run-program.js';
import { serverCommand } from '../../../src/agents/server-command.js';
import { until } from '../../support/until.js';

let home = '';
let at: Surroundings;

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'agents-')));
  await mkdir(join(home, 'bin'));
  await mkdir(join(home, 'project'));
  at = { env: { PATH: `${home}/bin:/usr/bin:/bin` }, home, platform: 'linux', cwd: join(home, 'project') };
});
afterEach(() => rm(home, { recursive: true }));

/** Puts a program on the PATH that reports a version, and prints lines for any other arguments. */
async function program(name: string, ...lines: readonly string[]): Promise<void> {
  const path = join(home, 'bin', name);
  const said = lines.map((line) => `echo '${line}'`).join('\n');
  await writeFile(
    path,
    `#!/bin/sh\ntouch "$0.ran"\n[ "$1" = --version ] && echo "${name} 1.2.3" && exit\ntouch "$0.asked"\n${said}\n`,
  );
  await chmod(path, 0o755);
}

async function put(path: string, value: object | string): Promise<void> {
  const whole = join(home, path);
  await mkdir(dirname(whole), { recursive: true });
  await writeFile(whole, typeof value === 'string' ? value : JSON.stringify(value));
}

const data = () => ({ dataDir: join(home, 'data'), isDefault: false });
const all = (): Promise<readonly ExaminedAgent[]> =>
  examineAgents({ at, packageFolder: '/opt/palimpsest', data: data() });
const examined = async (): Promise<ExaminedAgent | undefined> => (await all())[0];

/** Records that this user's setup wrote an entry into a file of the project. */
async function wroteInProject(path: string, entry: readonly string[], value: object): Promise<void> {
  const made = [{ kind: 'entry', path: [...entry], value, created: 0 }] as KeptChange['made'];
  const whole = join(at.cwd, path);
  await keepChange(
    data().dataDir,
    {
      format: 1,
      agent: 'any',
      scope: 'project',
      path: whole,
      syntax: 'json',
      before: null,
      after: hashOf(''),
      folders: [],
      made,
      at: new Date().toISOString(),
    },
    undefined,
  );
}
const claudeSettings = { mcpServers: { ctx: { command: 'palimpsest', args: ['mcp'] } } };

/** A server in Node.js that gives this answer to its first line if the condition holds. */
const serverThatSays = (answer: object, condition = 'true') => ({
  command: process.execPath,
  args: [
    '-e',
    `process.stdin.once('data', () => ${condition} && console.log(${JSON.stringify(JSON.stringify(answer))}))`,
    '--',
    '--short-ids',
  ],
});
const greeting = (name: string) => ({ jsonrpc: '2.0', id: 1, result: { serverInfo: { name, version: '1' } } });

describe('examining agents', () => {
  test('finds no agent on a machine without agents', async () => {
    expect(await all()).toEqual([]);
  });

  test('does not run an agent that is not set up', async () => {
    await program('claude');
    expect(await examined()).toMatchObject({
      isSetUp: false,
      text: 'Claude Code: not set up; to set it up: palimpsest setup claude',
      findings: [],
    });
    await expect(stat(join(home, 'bin', 'claude.ran'))).rejects.toThrow(/ENOENT/);
  });

  test.each([
    ['ctx: palimpsest mcp - ✔ Connected', 'connected', 'reaches Palimpsest', undefined],
    ['ctx: palimpsest mcp - ✘ Failed to connect', 'failed', 'DOES NOT REACH PALIMPSEST', 'agent-unreachable'],
    ['ctx: palimpsest mcp - ⏸ Pending approval', 'waits', 'waits for your consent', 'agent-waits'],
    ['other: another - ✔ Connected', 'absent', 'DOES NOT KNOW PALIMPSEST', 'agent-unreachable'],
  ])('believes the agent’s own check: %s', async (line, reach, words, code) => {
    await program('claude', 'Checking MCP server health…', '', line);
    await put('.claude.json', claudeSettings);
    expect(await examined()).toMatchObject({
      agent: 'claude',
      version: '1.2.3',
      reach,
      text: `Claude Code 1.2.3: set up in ${home}/.claude.json; ${words}`,
      findings: code === undefined ? [] : [[code, expect.stringContaining(`claude mcp list says: `)]],
    });
  });

  test('starts the server of the settings if the agent only lists it', async () => {
    await program('codex', 'Name  Command  Status', 'ctx   node     enabled');
    const toml = ({ command, args }: ReturnType<typeof serverThatSays>) =>
      `[mcp_servers.ctx]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`;
    await put('.codex/config.toml', toml(serverThatSays(greeting('palimpsest'))));
    expect(await examined()).toMatchObject({ reach: 'listed', findings: [] });
    await put('.codex/config.toml', toml(serverThatSays(greeting('another'))));
    expect(await examined()).toMatchObject({
      reach: 'failed',
      findings: [['agent-unreachable', expect.stringMatching(/^Codex: its server did not answer: /)]],
    });
    await put('.codex/config.toml', toml({ command: join(home, 'gone'), args: ['mcp', '--short-ids'] }));
    expect(await examined()).toMatchObject({ reach: 'failed' });
  });

  test('starts the server for an editor that has no check, in the open folder', async () => {
    const inProject = 'process.argv.at(-1) === process.cwd()';
    const { command, args } = serverThatSays(greeting('palimpsest'), inProject);
    const entry = { command, args: [...args, WORKSPACE] };
    await put('project/.vscode/mcp.json', { servers: { ctx: entry } });
    await wroteInProject('.vscode/mcp.json', ['servers', 'ctx'], entry);
    await program('code');
    expect(await examined()).toMatchObject({
      agent: 'vscode',
      reach: 'listed',
      files: [`${home}/project/.vscode/mcp.json`],
    });
  });

  test('ignores a server of our name that is not ours', async () => {
    await program('claude');
    await put('.claude.json', { mcpServers: { ctx: { command: 'another' } } });
    expect(await examined()).toMatchObject({ isSetUp: false });
  });

  test('names a settings file that cannot be parsed, with its line', async () => {
    await program('claude');
    await put('.claude.json', '{\n  "a": \n');
    const { text, findings } = (await examined()) as ExaminedAgent;
    expect(text).toContain('a settings file cannot be read, see below');
    expect(findings).toEqual([['agent-settings', `${home}/.claude.json, line 3: value expected`]]);
  });

  test('reports the loop of pi by its package', async () => {
    await program('pi');
    await put('.pi/agent/settings.json', { packages: ['/opt/palimpsest'] });
    expect(await examined()).toMatchObject({
      isSetUp: true,
      reach: undefined,
      text: expect.stringContaining('its loop loads Palimpsest'),
    });
  });
});

/** A command that creates a file, and that a reader of settings takes for ours. */
const hostile = () => ({ command: '/bin/sh', args: ['-c', `touch ${home}/ran # palimpsest`, '--short-ids'] });
const hasRun = (): Promise<boolean> =>
  stat(join(home, 'ran')).then(
    () => true,
    () => false,
  );

describe('settings of a cloned project', () => {
  test.each([
    ['.vscode/mcp.json', 'code', (entry: object) => ({ servers: { ctx: entry } })],
    ['.cursor/mcp.json', 'cursor', (entry: object) => ({ mcpServers: { ctx: entry } })],
    ['.mcp.json', 'claude', (entry: object) => ({ mcpServers: { ctx: entry } })],
  ])('never make doctor run their command: %s', async (path, name, settings) => {
    await program(name, 'ctx: x - Connected');
    await put(`project/${path}`, settings(hostile()));
    expect(await examined()).toMatchObject({
      reach: undefined,
      text: expect.stringContaining('; not checked, because'),
    });
    expect(await hasRun()).toBe(false);
    await expect(stat(join(home, 'bin', `${name}.asked`))).rejects.toThrow(/ENOENT/);
  });

  test('never make doctor run their command in TOML, even beside an entry of the user', async () => {
    await program('codex', 'ctx   node     enabled');
    const toml = ({ command, args }: ReturnType<typeof hostile>) =>
      `[mcp_servers.ctx]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`;
    await put('project/.codex/config.toml', toml(hostile()));
    await put('.codex/config.toml', toml(serverThatSays(greeting('palimpsest'))));
    expect(await examined()).toMatchObject({ reach: 'listed', findings: [] });
    expect(await hasRun()).toBe(false);
  });

  test('do not affect the check of an agent: it runs in the home folder', async () => {
    await writeFile(join(home, 'bin', 'claude'), `#!/bin/sh\npwd >> ${home}/where\necho 1.2.3\n`, { mode: 0o755 });
    await put('.claude.json', claudeSettings);
    await examined();
    expect(await readFile(join(home, 'where'), 'utf8')).toBe(`${home}/bin\n${home}\n`);
  });

  test('are checked in their folder once setup has written them', async () => {
    await writeFile(join(home, 'bin', 'claude'), `#!/bin/sh\necho "ctx: x - Connected in $PWD"\n`, { mode: 0o755 });
    const entry = { type: 'stdio', command: 'palimpsest', args: ['mcp', '--short-ids'] };
    await put('project/.mcp.json', { mcpServers: { ctx: entry } });
    await wroteInProject('.mcp.json', ['mcpServers', 'ctx'], entry);
    expect(await examined()).toMatchObject({ reach: 'connected' });
    await put('project/.mcp.json', { mcpServers: { ctx: { ...entry, args: ['uninstall', '--data', '--short-ids'] } } });
    expect(await examined()).toMatchObject({ reach: undefined });
  });

  test('of a teammate are tried without the agent if they are as a setup would write them', async () => {
    await program('claude');
    const claude = AGENTS.find(({ id }) => id === 'claude') as (typeof AGENTS)[number];
    const theirs = await serverCommand(claude, 'project', {
      at,
      data: data(),
      program: { packageFolder: '/opt/palimpsest', node: process.execPath },
    });
    await put('project/.mcp.json', { mcpServers: { ctx: { type: 'stdio', ...theirs() } } });
    expect(await examined()).toMatchObject({
      reach: 'failed',
      findings: [['agent-unreachable', expect.stringContaining('its server did not answer')]],
    });
  });

  test.each([
    ['a number', 5],
    ['a text', 'palimpsest'],
    ['a NUL', ['a\0b']],
  ])('may have an entry whose arguments are %s', async (_kind, args) => {
    await program('gemini', 'ctx: connecting');
    await put('.gemini/settings.json', { mcpServers: { ctx: { command: '/bin/palimpsest', args } } });
    expect(await examined()).toMatchObject({ agent: 'gemini', reach: 'failed' });
  });
});

describe('programs on the PATH', () => {
  test.each(['.', 'bin', 'project/bin', 'project/node_modules/.bin', 'node_modules/.bin'])(
    'are not taken from the project: %s',
    async (folder) => {
      const inProject = { ...at, cwd: join(home, 'project'), home: `${home}-of-user` };
      await put('project/bin/claude', '#!/bin/sh\n');
      await put('project/claude', '#!/bin/sh\n');
      await put('project/node_modules/.bin/claude', '#!/bin/sh\n');
      await put('node_modules/.bin/claude', '#!/bin/sh\n');
      for (const path of ['project/bin', 'project', 'project/node_modules/.bin', 'node_modules/.bin'])
        await chmod(join(home, path, 'claude'), 0o755);
      const path = folder.includes('/') ? join(home, folder) : folder;
      const before = process.cwd();
      process.chdir(inProject.cwd);
      try {
        expect(await findProgram(['claude'], { ...inProject, env: { PATH: path } })).toBeUndefined();
      } finally {
        process.chdir(before);
      }
    },
  );

  test('are taken from the home if it is the folder', async () => {
    await program('claude');
    expect(await findProgram(['claude'], { ...at, cwd: home })).toBe(join(home, 'bin', 'claude'));
  });

  const run = (text: string, limitMs: number) =>
    runProgram('/bin/sh', ['-c', text], { env: at.env, cwd: home, limitMs });

  test('are stopped with all that they started', async () => {
    const { isLate } = await run(`sleep 1000 & echo $! > ${home}/pid; wait`, 300);
    expect(isLate).toBe(true);
    const pid = Number(await readFile(join(home, 'pid'), 'utf8'));
    await until(
      () => isRunning(pid),
      (is) => !is,
    );
  });

  test('are not waited for once they end, although another program keeps their output open', async () => {
    const { code, output, isLate } = await run(`sleep 1000 & echo $! > ${home}/pid; echo done`, 200_000);
    process.kill(Number(await readFile(join(home, 'pid'), 'utf8')));
    expect({ code, output, isLate }).toEqual({ code: 0, output: 'done\n', isLate: false });
  });

  test('are stopped after a megabyte', async () => {
    const { code, output, isLate } = await run('yes 11111111', 200_000);
    expect({ code, isLate }).toEqual({ code: undefined, isLate: false });
    expect(output.length).toBeLessThan(3_000_000);
  });
});

const isRunning = async (pid: number): Promise<boolean> =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (text) => !/\) [ZX] /.test(text),
    () => false,
  );
