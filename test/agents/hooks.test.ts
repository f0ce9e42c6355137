import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Agent, Surroundings } from '../../src/agents/agent.js';
import { AGENTS } from '../../src/agents/agent-table.js';
import { type HookAgent, hookState } from '../../src/agents/hooks/hook-folder.js';
import { installHookClient } from '../../src/agents/hooks/install-client.js';
import { applyPlanned, planSetup } from '../../src/agents/plan-setup.js';
import { hookCompanion } from '../../src/hooks/serve-hooks.js';
import { until } from '../support/until.js';
import { WatchedMachine } from '../support/watched.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';
import { type Plan, type ScriptedModel, startScriptedModel } from './scripted-model.js';

const TEXT = `${Array.from({ length: 60 }, (_, i) => `const line${i + 1} = ${i + 1};`).join('\n')}\n`;
const RULES = 'Never round a price.\n';
/** How each agent saw the file. Gemini CLI names no calls. */
const SEEN = { claude: 'read it in call 1', codex: 'saw it in call 1', gemini: 'read it' } as const;
const CHANGED = TEXT.replace('line42 = 42', 'line42 = 24');

let watched: WatchedMachine;
let home: string;
let project: string;
let dataDir: string;
let model: ScriptedModel;

beforeEach(async () => {
  watched = await WatchedMachine.create();
  ({ home } = watched.machine);
  [project, dataDir] = [join(home, 'project'), watched.dataDir];
  for (const folder of [project, dataDir]) await mkdir(folder, { mode: 0o700, recursive: true });
  await writeFile(join(project, 'cart.ts'), TEXT);
  await writeFile(join(project, 'RULES.md'), RULES);
});
afterEach(async () => {
  await model.close();
  await watched.remove();
});

/** How an agent is started offline, and how its model reads and edits a file. */
interface Scripted {
  /** Settings beside our hooks. */
  readonly settings?: { readonly path: string; text(): string };
  env(): NodeJS.ProcessEnv;
  args(prompt: string): readonly string[];
  readonly read: { readonly tool: string; readonly args: Readonly<Record<string, unknown>> };
  edit(from: string, to: string): { readonly tool: string; readonly args: Readonly<Record<string, unknown>> };
}

const file = (): string => join(project, 'cart.ts');
const address = (): string => model.baseUrl.replace(/\/v1$/, '');

const SCRIPTED: Readonly<Record<'claude' | 'codex' | 'gemini', Scripted>> = {
  claude: {
    env: () => ({
      ANTHROPIC_BASE_URL: address(),
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      IS_SANDBOX: '1',
    }),
    args: (prompt) => ['-p', prompt, '--dangerously-skip-permissions', '--model', 'claude-sonnet-4-5'],
    get read() {
      return { tool: 'Read', args: { file_path: file() } };
    },
    edit: (from, to) => ({ tool: 'Edit', args: { file_path: file(), old_string: from, new_string: to } }),
  },
  codex: {
    settings: {
      path: '.codex/config.toml',
      // This model has the tool `apply_patch`. A request with more tokens than the limit starts a
      // compaction.
      text: () => `model = "gpt-5.5"\nmodel_provider = "scripted"\napproval_policy = "never"
sandbox_mode = "danger-full-access"\nmodel_auto_compact_token_limit = 20000\n
[model_providers.scripted]\nname = "scripted"\nbase_url = "${model.baseUrl}"\nwire_api = "responses"
env_key = "SCRIPTED_KEY"\n`,
    },
    env: () => ({ SCRIPTED_KEY: 'none' }),
    args: (prompt) => ['exec', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', prompt],
    read: { tool: 'exec_command', args: { cmd: 'cat cart.ts' } },
    edit: (from, to) => ({
      tool: 'apply_patch',
      args: { input: `*** Begin Patch\n*** Update File: cart.ts\n@@\n-${from}\n+${to}\n*** End Patch\n` },
    }),
  },
  gemini: {
    settings: { path: '.gemini/settings.json', text: () => '{"security":{"auth":{"selectedType":"gemini-api-key"}}}' },
    env: () => ({ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: address(), GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
    args: (prompt) => ['-p', prompt, '--approval-mode', 'yolo', '-m', 'gemini-2.5-flash'],
    read: { tool: 'read_file', args: { file_path: 'cart.ts' } },
    edit: (from, to) => ({
      tool: 'replace',
      args: { file_path: file(), instruction: 'change it', old_string: from, new_string: to },
    }),
  },
};
type Name = keyof typeof SCRIPTED;

/** Writes the settings as `palimpsest setup --way hooks` does, with the native client. */
async function setUp(name: Name): Promise<void> {
  const at: Surroundings = { env: process.env, home, platform: process.platform, cwd: project };
  const { settings } = SCRIPTED[name];
  if (settings !== undefined) {
    await mkdir(dirname(join(home, settings.path)), { recursive: true });
    await writeFile(join(home, settings.path), settings.text());
  }
  const source = resolve('src/hooks/native/palimpsest-hook.c');
  const packageFolder = join(home, 'program');
  await mkdir(join(packageFolder, 'dist'), { recursive: true });
  await writeFile(join(packageFolder, 'dist', 'palimpsest-hook.c'), await readFile(source));
  expect(await installHookClient(dataDir, { packageFolder, at })).toBe('compiled');
  await watched.start({}, [hookCompanion({ packageFolder, at })]);
  const agent = AGENTS.find(({ id }) => id === name) as Agent;
  const server = () => ({ command: 'palimpsest', args: ['mcp'] });
  const wanted = { at: { ...at, env: {} }, scope: 'user', server, dataDir, isDataNamed: true, packageFolder } as const;
  const plan = await planSetup(agent, ['hooks'], { wanted, dataDir });
  if ('refused' in plan) throw new Error(plan.refused);
  for (const planned of plan) await applyPlanned(planned, dataDir);
}

async function runAgent(name: Name, prompt: string, ...more: readonly string[]): Promise<void> {
  const { args, env } = SCRIPTED[name];
  const { PATH } = process.env;
  const end = await runProgram(await newestAgent(name), [...args(prompt), ...more], {
    cwd: project,
    env: { PATH, HOME: home, LANG: 'C.UTF-8', ...env() },
    timeoutMs: 120_000,
  });
  expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr }).toEqual({ code: 0, stderr: '' });
}

/** Waits until the watcher has read the transcript of the only session. */
async function isRead(agent: HookAgent): Promise<void> {
  const state = await until(watched.state, (found) => found?.followed.length === 1);
  const { session = '', path: transcript = '' } = state?.followed[0] ?? {};
  await (await watched.followed.session(agent, session, { transcript })).catchUp();
}

describe.each(['claude', 'codex', 'gemini'] as const)('the newest %s with our hooks', (name) => {
  const { edit } = SCRIPTED[name];

  test('refuses an edit of a stale file once, and the next request has the changed lines', async () => {
    const agent = ({ claude: 'claude-code', codex: 'codex', gemini: 'gemini-cli' } as const)[name];
    const plan: Plan = async ({ offered, results }) => {
      if (offered.length === 0) return { say: 'ok' };
      if (results.length === 0) return SCRIPTED[name].read;
      // A model thinks for longer than the watcher reads. Meanwhile a person changes the file.
      if (results.length === 1) {
        await isRead(agent);
        await writeFile(file(), CHANGED);
      }
      const made = edit('const line7 = 7;', 'const line7 = 8;');
      return results.length <= 2 ? made : { say: 'all done' };
    };
    model = await startScriptedModel(plan);
    await setUp(name);
    await runAgent(name, 'go on');
    const [, refused, done] = model.seen.at(-1)?.results ?? [];
    expect(refused).toContain(`cart.ts changed since you ${SEEN[name]} (line 42)`);
    expect(refused).toContain('+const line42 = 24;');
    expect(done).not.toContain('changed since you');
    expect(await readFile(file(), 'utf8')).toBe(CHANGED.replace('line7 = 7', 'line7 = 8'));
    expect(await hookState(dataDir, agent)).toEqual({ reached: expect.any(Date), unreached: undefined });
    expect((await watched.state())?.notices).toEqual([]);
  });
});

/** Pins the rules in the session of an agent, as its model or a person does. */
async function pin(agent: HookAgent, native: string): Promise<void> {
  const followed = await watched.followed.session(agent, native, {});
  await followed.catchUp();
  const { session } = followed;
  const plan = await session.planVerb('pin', [join(project, 'RULES.md')]);
  expect(plan.entries).toMatchObject([{ ok: true }]);
  await session.recordCall({ tool: 'pin', args: {}, status: 'ok', content: '', plan, answer: () => '' });
}

const NOTE = /The compaction took a pinned object out of your context[\s\S]*Never round a price\./;
/** Returns whether the last request has the note. The request itself is too long to show. */
const isNoted = (): boolean => NOTE.test(JSON.stringify(model.seen.at(-1)?.body));

describe('a compaction', () => {
  test('brings a pinned file back in Claude Code', async () => {
    const native = randomUUID();
    model = await startScriptedModel(({ offered, results }, number) => {
      if (offered.length === 0 || results.length > 0 || number > 2) return { say: 'It was about a cart.' };
      return { tool: 'Read', args: { file_path: join(project, 'RULES.md') } };
    });
    await setUp('claude');
    await runAgent('claude', 'go on', '--session-id', native);
    await pin('claude-code', native);
    await runAgent('claude', '/compact', '--resume', native);
    await runAgent('claude', 'continue', '--resume', native);
    expect(isNoted()).toBe(true);
    expect((await watched.state())?.notices).toEqual([]);
  });

  test('brings a pinned file back in Codex', async () => {
    model = await startScriptedModel(async ({ body }, number) => {
      if (number === 1) return { tool: 'exec_command', args: { cmd: 'cat RULES.md' }, tokens: 30_000 };
      // The request for a summary.
      if (number === 2) await pin('codex', String((body as { prompt_cache_key?: unknown }).prompt_cache_key));
      return { say: 'It was about a cart.' };
    });
    await setUp('codex');
    await runAgent('codex', 'go on');
    expect(isNoted()).toBe(true);
    expect((await watched.state())?.notices).toEqual([]);
  });
});
