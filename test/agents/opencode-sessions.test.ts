import { watch as watchFolder } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { until } from '../support/until.js';
import { newestAgent } from './install-agent.js';
import { type ProgramEnd, runProgram } from './run-program.js';
import { startScriptedModel } from './scripted-model.js';

/** Longer than the pause between two reads of a database. */
const QUIET_MS = 1_500;
/** Maximum wait for a folder without changes. */
const MOST_MS = 30_000;

/** Returns whether a folder has no change for `ms` within the time limit. */
async function quietFor(folder: string, ms: number): Promise<boolean> {
  let last = performance.now();
  const until = last + MOST_MS;
  const watch = watchFolder(folder, () => {
    last = performance.now();
  });
  try {
    for (let now = last; now < until; now = performance.now()) {
      if (now - last >= ms) return true;
      await pause(Math.max(1, last + ms - now));
    }
    return false;
  } finally {
    watch.close();
  }
}

describe('a session in the database of OpenCode', () => {
  let [home, project, data] = ['', '', ''];
  let palimpsest: (...args: readonly string[]) => Promise<ProgramEnd>;
  let opencode: (...args: readonly string[]) => Promise<ProgramEnd>;
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
    opencode = (...rest) =>
      runProgram(program, ['run', '-m', 'scripted/scripted', ...rest], { cwd: project, env, timeoutMs: 150_000 });
    const { stdout, stderr } = await opencode('look at the file');
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

  test('is continued by palimpsest watch while OpenCode writes it', async () => {
    await palimpsest('watch', '--background');
    try {
      const { id } = JSON.parse((await palimpsest('open', 'LAST', '--json')).stdout);
      expect((await opencode('-c', 'and now?')).stdout).toContain('It has one line.');
      const context = async () => (await palimpsest('context', id, '--assemble')).stdout;
      const text = await until(context, (found) => found.split('assistant: It has one line.').length === 3);
      expect(text.match(/^user: /gm)).toHaveLength(2);
      expect(await quietFor(join(home, '.local', 'share', 'opencode'), QUIET_MS)).toBe(true);
      const { followed, failed, notices } = JSON.parse((await palimpsest('watch', '--status', '--json')).stdout);
      expect({ followed, failed, notices }).toEqual({ followed: [], failed: [], notices: [] });
    } finally {
      await palimpsest('watch', '--stop');
    }
  });
});
