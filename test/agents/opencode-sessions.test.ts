import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { newestAgent } from './install-agent.js';
import { type ProgramEnd, runProgram } from './run-program.js';
import { startScriptedModel } from './scripted-model.js';

describe('a session in the database of OpenCode', () => {
  let [home, project, data] = ['', '', ''];
  let palimpsest: (...args: readonly string[]) => Promise<ProgramEnd>;
  const removals: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    [home, project, data] = places.map(({ root }) => root) as [string, string, string];
    removals.push(...places.map(({ remove }) => remove));
    await mkdir(join(project, '.git'));
    await writeFile(join(project, 'a.txt'), 'the text of a\n');
    const model = await startScriptedModel([
      { tool: 'read', args: { filePath: join(project, 'a.txt') } },
      { say: 'It has one line.' },
    ]);
    removals.push(() => model.close());
    const scripted = {
      npm: '@ai-sdk/openai-compatible',
      name: 'scripted',
      options: { baseURL: model.baseUrl, apiKey: 'none' },
      models: { scripted: { name: 'scripted', tool_call: true } },
    };
    await writeFile(join(project, 'opencode.json'), JSON.stringify({ provider: { scripted } }));
    const env = {
      HOME: home,
      PATH: process.env.PATH,
      XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(process.env.HOME ?? '', '.cache'),
      PALIMPSEST_DATA: data,
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
    };
    const program = await newestAgent('opencode');
    const args = ['run', '-m', 'scripted/scripted', 'look at the file'];
    const { stdout, stderr } = await runProgram(program, args, { cwd: project, env, timeoutMs: 150_000 });
    expect(stdout + stderr).toContain('It has one line.');
    // Older versions of Node have no SQLite.
    const node = await newestAgent('node');
    palimpsest = (...rest) => runProgram(node, [cliPath, ...rest], { cwd: project, env, timeoutMs: 100_000 });
  }, 600_000);
  afterAll(async () => {
    await runCli(['node', 'stop', '--data', data], { XTDB_URL: undefined });
    for (const remove of removals) await remove();
  });

  test('opens under its own id, with its calls and results', async () => {
    const { stdout, stderr } = await palimpsest('open', 'LAST', '--json');
    expect(stderr).not.toContain('ExperimentalWarning');
    const { agent, id, session, outcome } = JSON.parse(stdout);
    expect([agent, outcome, session]).toEqual(['OpenCode', 'imported', id]);
    expect(id).toMatch(/^ses_/);
    const context = await palimpsest('context', id, '--assemble');
    expect(context.stdout).toContain('the text of a');
    expect(JSON.parse((await palimpsest('open', 'LAST', '--json')).stdout)).toMatchObject({ outcome: 'unchanged' });
  });

  test('counts among the costs', async () => {
    const { rows } = JSON.parse((await palimpsest('costs', '--by', 'agent', '--json')).stdout);
    expect(rows).toEqual([expect.objectContaining({ key: 'OpenCode', sessions: 1, calls: 2 })]);
  });
});
