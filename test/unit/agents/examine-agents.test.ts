import { chmod, mkdir, mkdtemp, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type Surroundings, WORKSPACE } from '../../../src/agents/agent.js';
import { type ExaminedAgent, examineAgents } from '../../../src/agents/examine-agents.js';

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
  await writeFile(path, `#!/bin/sh\ntouch "$0.ran"\n[ "$1" = --version ] && echo "${name} 1.2.3" && exit\n${said}\n`);
  await chmod(path, 0o755);
}

async function put(path: string, value: object | string): Promise<void> {
  const whole = join(home, path);
  await mkdir(dirname(whole), { recursive: true });
  await writeFile(whole, typeof value === 'string' ? value : JSON.stringify(value));
}

const examined = async (): Promise<ExaminedAgent | undefined> => (await examineAgents(at, '/opt/palimpsest'))[0];
const claudeSettings = { mcpServers: { ctx: { command: 'palimpsest', args: ['mcp'] } } };

/** A server in Node.js that answers its first line so, if the condition holds. */
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
  test('finds none on a machine without any', async () => {
    expect(await examineAgents(at, '/opt/palimpsest')).toEqual([]);
  });

  test('does not run an agent that is not set up', async () => {
    await program('claude');
    expect(await examined()).toMatchObject({
      isSetUp: false,
      text: 'Claude Code: not set up; palimpsest setup claude does it',
      findings: [],
    });
    await expect(stat(join(home, 'bin', 'claude.ran'))).rejects.toThrow(/ENOENT/);
  });

  test.each([
    ['ctx: palimpsest mcp - ✔ Connected', 'connected', 'reaches us', undefined],
    ['ctx: palimpsest mcp - ✘ Failed to connect', 'failed', 'DOES NOT REACH US', 'agent-unreachable'],
    ['ctx: palimpsest mcp - ⏸ Pending approval', 'waits', 'waits for your consent', 'agent-waits'],
    ['other: another - ✔ Connected', 'absent', 'DOES NOT KNOW US in this folder', 'agent-unreachable'],
  ])('takes the agent’s own word: %s', async (line, reach, words, code) => {
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
    await put('project/.vscode/mcp.json', { servers: { ctx: { command, args: [...args, WORKSPACE] } } });
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
      text: expect.stringContaining('its loop loads us'),
    });
  });
});
