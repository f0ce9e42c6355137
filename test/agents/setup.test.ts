import { execFile, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';

const run = promisify(execFile);
const cacheFolder = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');

/** Agents, how they list their servers, and their settings before the setup. */
const AGENTS = {
  claude: {
    listed: /^ctx: .*✔ Connected$/m,
    file: '.claude.json',
    before: '{\n  "numStartups": 7\n}\n',
  },
  codex: {
    listed: /^ctx .*enabled/m,
    file: '.codex/config.toml',
    before: '# mine\nmodel = "x" # fast\n',
  },
  gemini: {
    listed: /ctx: .* - Connected$/m,
    file: '.gemini/settings.json',
    before: '{\n  // mine\n  "general": { "disableAutoUpdate": true }\n}\n',
  },
  opencode: {
    listed: /✓ ctx connected/,
    file: '.config/opencode/opencode.jsonc',
    before: '{\n  // mine\n  "autoupdate": false\n}\n',
  },
} as const;
type Name = keyof typeof AGENTS;
const NAMES = Object.keys(AGENTS) as Name[];

/** Returns Codex's answer about its MCP servers. Its `mcp list` does not connect. */
async function codexTools(
  program: string,
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  const child = spawn(program, ['app-server'], { ...options, stdio: ['pipe', 'pipe', 'ignore'] });
  const send = (message: object): void => void child.stdin.write(`${JSON.stringify(message)}\n`);
  send({ id: 1, method: 'initialize', params: { clientInfo: { name: 'test', version: '1' } } });
  send({ method: 'initialized' });
  send({ id: 2, method: 'mcpServerStatus/list', params: {} });
  let text = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    text += String(chunk);
    const answer = text.split('\n').find((line) => /^\{"id":2,/.test(line));
    if (answer === undefined || !text.endsWith('\n')) continue;
    child.kill();
    return answer;
  }
  throw new Error(`codex app-server ended: ${text}`);
}

describe('pi after palimpsest setup', () => {
  test('loads our package, reaches the read-only server, and has neither after the undo', async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    const [home, project, data] = places.map(({ root }) => root) as [string, string, string];
    // pi needs a newer Node.js than the one of this test may be.
    const program = await newestAgent('pi');
    const node = await newestAgent('node');
    const env = {
      HOME: home,
      PATH: `${dirname(node)}:${dirname(program)}:${process.env.PATH}`,
      LANG: 'C.UTF-8',
      PALIMPSEST_DATA: data,
      XDG_CACHE_HOME: cacheFolder,
      PI_OFFLINE: '1',
    };
    const pi = async (...args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await runProgram(program, args, { cwd: project, env, timeoutMs: 100_000 });
      return stripVTControlCharacters(stdout + stderr);
    };
    const palimpsest = (...args: readonly string[]) => run(process.execPath, [cliPath, ...args], { cwd: project, env });
    try {
      await palimpsest('setup', 'pi', '--yes');
      expect(await pi('list')).toContain(dirname(dirname(cliPath)));
      await palimpsest('setup', 'pi', '--way', 'mcp', '--yes');
      const listed = await pi('mcp', 'list');
      expect(listed).toMatch(/^ctx: connected, \d+ tools/m);
      expect(listed).not.toMatch(/tools: .*(?:write|edit|bash)/);
      await palimpsest('setup', '--undo', '--yes');
      expect(await pi('list')).toContain('No packages installed');
      expect(await pi('mcp', 'list')).not.toMatch(/^ctx/m);
    } finally {
      await runCli(['node', 'stop', '--data', data], { XTDB_URL: undefined });
      for (const { remove } of places) await remove();
    }
  });
});

describe('palimpsest setup --yes, alone', () => {
  let [home, project, data] = ['', '', ''];
  let env: NodeJS.ProcessEnv = {};
  const programs = new Map<Name, string>();
  const removals: (() => Promise<unknown>)[] = [];
  const palimpsest = (...args: readonly string[]) => run(process.execPath, [cliPath, ...args], { cwd: project, env });

  beforeAll(async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    [home, project, data] = places.map(({ root }) => root) as [string, string, string];
    removals.push(...places.map(({ remove }) => remove));
    for (const name of NAMES) {
      programs.set(name, await newestAgent(name));
    }
    env = {
      HOME: home,
      PATH: [...[...programs.values()].map(dirname), process.env.PATH].join(':'),
      LANG: 'C.UTF-8',
      PALIMPSEST_DATA: data,
      XDG_CACHE_HOME: cacheFolder,
      // The user's answer to the question of Gemini CLI whether to trust this folder.
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    };
    for (const { file, before } of Object.values(AGENTS)) {
      await mkdir(dirname(join(home, file)), { recursive: true });
      await writeFile(join(home, file), before);
    }
    const { stdout } = await palimpsest('setup', ...NAMES, '--yes');
    console.log(
      stdout
        .split('\n')
        .filter((line) => /\d+\.\d+/.test(line) && line.includes('.bin/'))
        .join('\n'),
    );
  }, 600_000);
  afterAll(async () => {
    await runCli(['node', 'stop', '--data', data], { XTDB_URL: undefined });
    for (const remove of removals) await remove();
  });

  test.each(NAMES)('makes %s list us as connected', async (name) => {
    const program = programs.get(name) as string;
    const { stdout, stderr } = await runProgram(program, ['mcp', 'list'], { cwd: project, env, timeoutMs: 100_000 });
    expect(stripVTControlCharacters(stdout + stderr)).toMatch(AGENTS[name].listed);
  });

  test('makes Codex start the server and take its tools', async () => {
    const answer = await codexTools(programs.get('codex') as string, { cwd: project, env });
    const [server] = (JSON.parse(answer) as { result: { data: { name: string; tools: object }[] } }).result.data;
    expect(server?.name).toBe('ctx');
    expect(Object.keys(server?.tools ?? {})).toEqual(expect.arrayContaining(['read', 'write', 'edit', 'context']));
  });

  test('makes doctor report for each agent, in one line, that it reaches Palimpsest', async () => {
    const { stdout } = await palimpsest('doctor').catch((error: { stdout: string }) => error);
    const lines = stdout.split('\n').filter((line) => line.startsWith('agent '));
    expect(lines).toHaveLength(NAMES.length);
    for (const line of lines) {
      expect(line).toMatch(
        / \d+\.\d+\.\d+: set up in \S+(?:, \S+)*; (?:reaches Palimpsest|lists Palimpsest, and the server answers); /,
      );
      expect(line).toContain('recording works');
    }
  });

  test('is undone: no agent lists Palimpsest, and comments and values are as before', async () => {
    await palimpsest('setup', '--undo', '--yes');
    for (const name of NAMES) {
      const program = programs.get(name) as string;
      const { stdout, stderr } = await runProgram(program, ['mcp', 'list'], { cwd: project, env, timeoutMs: 100_000 });
      expect(stdout + stderr).not.toMatch(/\bctx\b/);
    }
    expect(await readFile(join(home, AGENTS.codex.file), 'utf8')).toBe(AGENTS.codex.before);
    expect(await readFile(join(home, AGENTS.opencode.file), 'utf8')).toContain('// mine');
    expect(JSON.parse(await readFile(join(home, AGENTS.claude.file), 'utf8'))).toMatchObject({ numStartups: 7 });
  });
});
