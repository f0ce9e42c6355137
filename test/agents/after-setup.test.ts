import { execFile } from 'node:child_process';
import { access, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { until } from '../support/until.js';
import { newestAgent, newestVersion } from './install-agent.js';
import { withoutInstallation } from './opencode-server.js';
import { runProgram } from './run-program.js';
import { type ScriptedModel, startScriptedModel, type Turn } from './scripted-model.js';

const run = promisify(execFile);

/** An agent's own settings for a scripted model, without any of ours. */
interface Scripted {
  /** Settings before the setup. */
  readonly settings?: Readonly<Record<string, (model: ScriptedModel) => string>>;
  env?(model: ScriptedModel): NodeJS.ProcessEnv;
  readonly args: readonly string[];
  readonly script: readonly Turn[];
  /** The result of a call of our tool `write` when no person can allow it. */
  readonly refused?: RegExp;
  /** The agent's words at the end of the session, if it does not ask the model once more. */
  readonly end?: RegExp;
  /** Another session, while the database runs. Its arguments allow our tools, as a person would. */
  readonly again?: {
    readonly args: readonly string[];
    readonly script: readonly Turn[];
    readonly recorded: readonly RegExp[];
  };
  /** Parts of the recorded session. */
  readonly recorded: readonly RegExp[];
}

/** A prompt, two calls of our tools, and an answer. */
const ours = (prefix: string): readonly Turn[] => [
  { tool: `${prefix}read`, args: { path: 'a.txt' } },
  { tool: `${prefix}write`, args: { path: 'b.txt', content: 'written' } },
  { say: 'all done' },
];
/** Claude Code describes the tools of a server only when the model searches for them. */
const FOUND: Turn = { tool: 'ToolSearch', args: { query: 'select:mcp__ctx__read,mcp__ctx__write' } };
const OURS = / read a\.txt 14 chars/;
const DONE = /all done[\s\S]*exit 0$/;
const WHOLE = [/ user: go on$/m, / assistant: all done/] as const;

const origin = ({ baseUrl }: ScriptedModel): string => baseUrl.replace(/\/v1$/, '');

const AGENTS: Readonly<Record<'claude' | 'codex' | 'opencode' | 'gemini' | 'pi', Scripted>> = {
  claude: {
    env: (model) => ({
      ANTHROPIC_BASE_URL: origin(model),
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    args: ['-p', 'go on'],
    script: [{ tool: 'Read', args: { file_path: 'a.txt' } }, FOUND, ...ours('ctx__')],
    refused: /haven't granted it/,
    again: {
      args: ['-p', 'and on', '--allowedTools', 'mcp__ctx__read'],
      script: [FOUND, ...ours('ctx__')],
      recorded: [OURS],
    },
    recorded: WHOLE,
  },
  codex: {
    settings: {
      '.codex/config.toml': (model) =>
        `model = "scripted"\nmodel_provider = "scripted"\napproval_policy = "never"\nsandbox_mode = "workspace-write"\n
[model_providers.scripted]\nname = "scripted"\nbase_url = "${model.baseUrl}"\nwire_api = "responses"
env_key = "SCRIPTED_KEY"\n`,
    },
    env: () => ({ SCRIPTED_KEY: 'none' }),
    // Otherwise Codex may ask the model before the server has started.
    args: ['exec', '--skip-git-repo-check', '-c', 'mcp_servers.ctx.required=true', 'go on'],
    script: ours(''),
    refused: /requires approval/,
    recorded: [OURS],
  },
  opencode: {
    settings: {
      '.config/opencode/opencode.json': (model) =>
        JSON.stringify({
          // Otherwise OpenCode adds this field.
          $schema: 'https://opencode.ai/config.json',
          provider: {
            scripted: {
              npm: '@ai-sdk/openai-compatible',
              name: 'scripted',
              options: { baseURL: model.baseUrl, apiKey: 'none' },
              models: { scripted: { name: 'scripted', tool_call: true } },
            },
          },
        }),
    },
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }),
    args: ['run', '-m', 'scripted/scripted', 'go on'],
    script: ours('ctx_'),
    end: /permission requested: ctx_write \(\*\); auto-rejecting[\s\S]*exit 0$/,
    recorded: [OURS],
  },
  gemini: {
    settings: { '.gemini/settings.json': () => '{"security":{"auth":{"selectedType":"gemini-api-key"}}}\n' },
    env: (model) => ({
      GEMINI_API_KEY: 'none',
      GOOGLE_GEMINI_BASE_URL: origin(model),
      // The user's answer to the question whether to trust this folder.
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    args: ['-p', 'go on', '-m', 'gemini-2.5-flash'],
    // Without a person Gemini CLI offers no tool of a server, so the model uses its own.
    script: [{ tool: 'read_file', args: { file_path: 'a.txt' } }, { say: 'all done' }],
    again: {
      args: ['-p', 'and on', '-m', 'gemini-2.5-flash', '--approval-mode', 'yolo'],
      script: ours('ctx_').toSpliced(1, 1),
      recorded: [OURS],
    },
    recorded: WHOLE,
  },
  pi: {
    settings: {
      '.pi/agent/models.json': (model) =>
        JSON.stringify({
          providers: {
            scripted: {
              baseUrl: model.baseUrl,
              api: 'openai-completions',
              apiKey: 'none',
              models: [{ id: 'scripted', name: 'scripted', contextWindow: 100_000, maxTokens: 8_000 }],
            },
          },
        }),
    },
    env: () => ({ PI_OFFLINE: '1' }),
    args: ['-p', 'go on', '--provider', 'scripted', '--model', 'scripted'],
    script: ours('').toSpliced(1, 1),
    recorded: [...WHOLE, OURS],
    // A first request does not wait for the database, so it may go out as pi made it.
    again: {
      args: ['-p', 'and on', '--provider', 'scripted', '--model', 'scripted'],
      script: ours('').toSpliced(1, 1),
      recorded: [/ user: and on$[\s\S]*epoch 1 began/m],
    },
  },
};
type Name = keyof typeof AGENTS;

/** A home folder with one agent on the PATH, after `palimpsest setup --yes`. */
async function afterSetup(name: Name, model: ScriptedModel) {
  const places = await Promise.all([temporaryRoot(), temporaryRoot()]);
  const [home, project] = places.map(({ root }) => root) as [string, string];
  const { settings = {}, env: own } = AGENTS[name];
  for (const [path, text] of Object.entries(settings)) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text(model));
  }
  if (name === 'opencode') await withoutInstallation(home);
  await writeFile(join(project, 'a.txt'), 'the text of a\n');
  await mkdir(join(project, '.git'));
  // This machine's cache has the built node.
  await mkdir(join(home, '.cache'));
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'palimpsest');
  await symlink(cache, join(home, '.cache', 'palimpsest'));
  const program = await newestAgent(name);
  // pi needs a later Node.js than this project.
  const before = name === 'pi' ? [dirname(await newestAgent('node'))] : [];
  const PATH = [...before, dirname(program), process.env.PATH].join(':');
  const env = { HOME: home, PATH, LANG: 'C.UTF-8', ...own?.(model) };
  const palimpsest = async (...rest: readonly string[]): Promise<string> =>
    (await run(process.execPath, [cliPath, ...rest], { cwd: project, env })).stdout;
  return {
    palimpsest,
    hasLogged: (parts: readonly RegExp[]) =>
      until(
        () => palimpsest('log', '--no-pager'),
        (log) => parts.every((part) => part.test(log)),
      ),
    isWritten: () =>
      access(join(project, 'b.txt')).then(
        () => true,
        () => false,
      ),
    session: async (args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await runProgram(program, args, { cwd: project, env, timeoutMs: 150_000 });
      return `${stripVTControlCharacters(stdout + stderr)}\nexit ${code}`;
    },
    settings: async (): Promise<readonly string[]> =>
      Promise.all(Object.keys(settings).map((path) => readFile(join(home, path), 'utf8'))),
    remove: async () => {
      for (const { remove } of places) await remove();
    },
  };
}

describe.each(Object.keys(AGENTS) as Name[])('the newest %s after palimpsest setup --yes', (name) => {
  const { args, script, refused, end = DONE, again, recorded, settings = {} } = AGENTS[name];

  test('a session after setup is recorded; no file changes without consent; uninstall undoes all changes', async () => {
    let turns = script;
    const model = await startScriptedModel(({ offered, results }) =>
      offered.length === 0 ? { say: 'ok' } : (turns[Math.min(results.length, turns.length - 1)] as Turn),
    );
    const agent = await afterSetup(name, model);
    const results = (): string => model.seen.at(-1)?.results.join('\n') ?? '';
    try {
      expect(await agent.palimpsest('setup', '--yes')).toContain(newestVersion(name).version);
      expect(await agent.session(args)).toMatch(end);
      expect(results()).toContain('the text of a');
      expect(results()).toMatch(refused ?? /(?:)/);
      await agent.hasLogged(recorded);
      if (again !== undefined) {
        turns = again.script;
        expect(await agent.session(again.args)).toMatch(DONE);
        expect(results()).toContain('the text of a');
        // The transcript shows the answers of our tools, too.
        expect(await agent.hasLogged(again.recorded)).not.toContain('other content');
      }
      expect(await agent.isWritten()).toBe(false);
      expect(await agent.palimpsest('doctor').catch((error) => error.stdout)).not.toContain('REPAIR');
      expect(await agent.palimpsest('uninstall')).toContain('Stopped the node');
    } finally {
      await model.close();
      await agent.palimpsest('uninstall');
    }
    expect(await agent.settings()).toEqual(Object.values(settings).map((text) => text(model)));
    await agent.remove();
  });
});
