import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import ajvModule from 'ajv';
import formatsModule from 'ajv-formats';
import { hookClient, hookState } from '../../src/agents/hooks/hook-folder.js';
import { cliPath, stdioAgent, temporaryRoot } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { until } from '../support/until.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';
import { startScriptedModel } from './scripted-model.js';

const run = promisify(execFile);
const Ajv = ajvModule as unknown as typeof ajvModule.default;
const addFormats = formatsModule as unknown as typeof formatsModule.default;

/** The registry's schema is not on npm, so this machine may lack it. */
const SCHEMA = process.env.PALIMPSEST_SERVER_SCHEMA;
const withSchema = SCHEMA === undefined ? test.skip : test;

describe('the parcels', () => {
  let [home, project, data, parcels] = ['', '', '', ''];
  let env: NodeJS.ProcessEnv = {};
  const removals: (() => Promise<unknown>)[] = [];
  const said = async (program: string, ...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runProgram(program, args, { cwd: project, env, timeoutMs: 100_000 });
    const output = stripVTControlCharacters(stdout + stderr);
    expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
    return output;
  };

  beforeAll(async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    [home, project, data, parcels] = places.map(({ root }) => root) as [string, string, string, string];
    removals.push(...places.map(({ remove }) => remove));
    await mkdir(join(home, 'bin'));
    await symlink(cliPath, join(home, 'bin', 'palimpsest'));
    env = {
      HOME: home,
      PATH: `${join(home, 'bin')}:${process.env.PATH}`,
      LANG: 'C.UTF-8',
      PALIMPSEST_DATA: data,
      XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache'),
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    };
    const root = dirname(dirname(cliPath));
    await run(process.execPath, [join(root, 'scripts', 'parcels.mjs'), parcels], { cwd: root });
  }, 300_000);
  afterAll(async () => {
    await runCli(['node', 'stop', '--data', data], { XTDB_URL: undefined });
    for (const remove of removals) await remove();
  });

  test('are a Claude Code plug-in that validates, installs from its marketplace, and connects', async () => {
    const claude = await newestAgent('claude');
    await said(claude, 'plugin', 'validate', '--strict', join(parcels, 'claude'));
    await said(claude, 'plugin', 'validate', '--profile', 'directory', join(parcels, 'claude', 'palimpsest'));
    await said(claude, 'plugin', 'marketplace', 'add', join(parcels, 'claude'));
    await said(claude, 'plugin', 'install', 'palimpsest@palimpsest');
    expect(await said(claude, 'mcp', 'list')).toMatch(/^plugin:palimpsest:ctx: .*✔ Connected$/m);
    expect(await said(claude, 'plugin', 'details', 'palimpsest')).toMatch(/Skills \(1\)\s+palimpsest/);
  });

  test('are a plug-in whose hooks start the watcher, reach it, and record the session', async () => {
    const claude = await newestAgent('claude');
    await writeFile(join(project, 'a.txt'), 'the text of a\n');
    const model = await startScriptedModel(({ offered, results }) => {
      if (offered.length === 0 || results.length > 0) return { say: 'all done' };
      return { tool: 'Read', args: { file_path: join(project, 'a.txt') } };
    });
    const session = async (): Promise<void> => {
      const id = randomUUID();
      const own = {
        ANTHROPIC_BASE_URL: model.baseUrl.replace(/\/v1$/, ''),
        ANTHROPIC_API_KEY: 'none',
        IS_SANDBOX: '1',
      };
      const args = [
        '-p',
        'go on',
        '--session-id',
        id,
        '--model',
        'claude-sonnet-4-5',
        '--dangerously-skip-permissions',
      ];
      const { code, stderr } = await runProgram(claude, args, {
        cwd: project,
        env: { ...env, ...own },
        timeoutMs: 120_000,
      });
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    };
    const status = async () => JSON.parse((await runCli(['watch', '--status', '--json', '--data', data])).stdout);
    try {
      await session();
      await until(status, ({ running }) => running);
      await until(
        () =>
          access(hookClient(data)).then(
            () => true,
            () => false,
          ),
        (isThere) => isThere,
      );
      await session();
      expect(await hookState(data, 'claude-code')).toMatchObject({ reached: expect.any(Date) });
      await until(status, ({ followed }) => followed.length > 0);
    } finally {
      await runCli(['watch', '--stop', '--data', data]);
      await model.close();
    }
  });

  test('are a Gemini CLI extension that validates, installs and connects', async () => {
    const gemini = await newestAgent('gemini');
    const folder = join(parcels, 'gemini');
    expect(await said(gemini, 'extensions', 'validate', folder)).toContain('successfully validated');
    await said(gemini, 'extensions', 'install', folder, '--consent');
    expect(await said(gemini, 'mcp', 'list')).toMatch(/ctx \(from palimpsest\): .* - Connected$/m);
  });

  test('are an MCP bundle that the public validator accepts, and whose server reads and searches', async () => {
    const [name = ''] = (await readdir(parcels)).filter((one) => one.endsWith('.mcpb'));
    const folder = join(home, 'bundle');
    const validator = await newestAgent('mcpb');
    await said(validator, 'unpack', join(parcels, name), folder);
    expect(await said(validator, 'validate', folder)).toContain('passes');
    const { server } = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
    const agent = await stdioAgent(join(folder, 'server'), [], {}, { program: join(folder, server.entry_point) });
    try {
      expect((await agent.call('read', { path: 'package.json' })).text).toContain('"palimpsest"');
      // Searching needs a program of this platform, which the bundle brings.
      expect((await agent.call('grep', { pattern: '"mcpName"', path: 'package.json' })).text).toContain('mcpName');
    } finally {
      await agent.close();
    }
  });

  test('are a registry entry for this version, by the name that the npm package has', async () => {
    const entry = JSON.parse(await readFile(join(parcels, 'server.json'), 'utf8'));
    const manifest = JSON.parse(await readFile('package.json', 'utf8'));
    expect(entry).toMatchObject({ name: manifest.mcpName, version: manifest.version });
    expect(entry.packages).toMatchObject([{ identifier: manifest.name, version: manifest.version }]);
    expect(entry.description.length).toBeLessThanOrEqual(100);
  });

  withSchema('are a registry entry that follows the published schema', async () => {
    const ajv = new Ajv({ strict: false, allErrors: true });
    addFormats(ajv);
    const isValid = ajv.compile(JSON.parse(await readFile(SCHEMA as string, 'utf8')));
    isValid(JSON.parse(await readFile(join(parcels, 'server.json'), 'utf8')));
    expect(isValid.errors).toBeNull();
  });
});
