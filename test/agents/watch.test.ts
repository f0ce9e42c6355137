import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readWatchReport } from '../../src/host/watch-report.js';
import { ensureNode, type NodeHandle } from '../../src/node/ensure-node.js';
import { stopNode } from '../../src/node/stop-node.js';
import { sessionId } from '../../src/objects/ids.js';
import { ObjectStore } from '../../src/store/object-store.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { type AgentMachine, agentMachine } from '../support/agent-machine.js';
import { runCli, startCli } from '../support/run-cli.js';
import { until } from '../support/until.js';
import { newestAgent } from './install-agent.js';
import { runProgram } from './run-program.js';
import { type ScriptedModel, startScriptedModel, type Turn } from './scripted-model.js';

let machine: AgentMachine;
let node: NodeHandle;
let xtdb: XtdbClient;
let store: ObjectStore;
let dataDir: string;
let project: string;
let env: Readonly<Record<string, string | undefined>>;
let watching: ReturnType<typeof startCli>;
beforeAll(async () => {
  machine = await agentMachine();
  dataDir = join(machine.home, 'data');
  project = join(machine.home, 'project');
  await mkdir(project, { recursive: true });
  await writeFile(join(project, 'poem.txt'), 'one\ntwo\nthree\n');
  env = { ...machine.env, PALIMPSEST_DATA: dataDir, PALIMPSEST_PROFILE: 'memory' };
  node = await ensureNode({ dataDir, profile: 'memory' });
  xtdb = new XtdbClient(node.address);
  store = new ObjectStore(xtdb);
  watching = startCli(['watch'], env);
  await until(
    () => readWatchReport(dataDir),
    (report) => report?.pid === watching.child.pid,
  );
});
afterAll(async () => {
  watching.child.kill('SIGTERM');
  await watching.result;
  await xtdb.close();
  await node.release();
  await stopNode(dataDir);
  await machine.remove();
});

const { PATH } = process.env;
const steps = (id: string) => store.latest().then((snapshot) => snapshot.steps(sessionId(id)).catch(() => []));
/** Waits until a session has a prompt and ends with a text, and returns what it says and calls. */
async function told(id: string, prompt: string, last: string) {
  // A fork begins with the steps of its parent, which end with the same text.
  const all = await until(
    () => steps(id),
    (found) => found.at(-1)?.message?.text === last && found.some(({ message }) => message?.text === prompt),
  );
  return all.map(({ message, call }) => (call === undefined ? `${message?.role}: ${message?.text}` : 'call'));
}

describe('Claude Code', () => {
  const run = async (model: ScriptedModel, ...args: readonly string[]) => {
    const claude = await newestAgent('claude');
    const end = await runProgram(claude, ['-p', '--output-format', 'json', '--dangerously-skip-permissions', ...args], {
      cwd: project,
      env: {
        PATH,
        HOME: machine.home,
        LANG: 'C.UTF-8',
        IS_SANDBOX: '1',
        ANTHROPIC_API_KEY: 'none',
        ANTHROPIC_BASE_URL: model.baseUrl.replace(/\/v1$/, ''),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
      timeoutMs: 100_000,
    });
    expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr + end.stdout }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(end.stdout) as { readonly session_id: string };
  };
  const file = (): string => join(project, 'poem.txt');
  const script = (): readonly Turn[] => [
    { tool: 'Read', args: { file_path: file() } },
    { tool: 'Edit', args: { file_path: file(), old_string: 'two', new_string: 'second' } },
    { say: 'all done' },
  ];

  test('is recorded as it works; a continued session stays one, and a fork is another', async () => {
    const model = await startScriptedModel(script());
    try {
      const { session_id: id } = await run(model, 'go on');
      const first = await told(id, 'go on', 'all done');
      expect(first.filter((one) => one === 'call')).toHaveLength(2);
      expect(first).toContain('user: go on');
      expect(await readFile(file(), 'utf8')).toBe('one\nsecond\nthree\n');

      const again = await run(model, '--resume', id, 'and more');
      expect(again.session_id).toBe(id);
      const second = await until(
        () => steps(id),
        (found) => found.length > first.length && found.at(-1)?.message?.text === 'all done',
      );
      expect(second.slice(0, first.length)).toEqual((await steps(id)).slice(0, first.length));
      expect(await steps(`${id}+2`)).toEqual([]);

      const fork = await run(model, '--resume', id, '--fork-session', 'otherwise');
      expect(fork.session_id).not.toBe(id);
      expect(await told(fork.session_id, 'otherwise', 'all done')).toContain('user: otherwise');

      const { stdout: context } = await runCli(['context', id], env);
      expect(context).toContain('from the transcript');
      expect((await runCli(['log', id, '--no-pager'], env)).stdout).toContain('go on');
      expect((await readWatchReport(dataDir))?.failed).toEqual([]);
    } finally {
      await model.close();
    }
  });
});

describe('Codex', () => {
  test('is recorded as it works, and its thread stays one session when it is resumed', async () => {
    const codex = await newestAgent('codex');
    const model = await startScriptedModel([
      { tool: 'exec_command', args: { cmd: 'cat poem.txt' } },
      { say: 'read it' },
    ]);
    const home = join(machine.home, '.codex');
    await mkdir(home, { recursive: true });
    await writeFile(
      join(home, 'config.toml'),
      `model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = ${JSON.stringify(model.baseUrl)}
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`,
    );
    const run = async (...args: readonly string[]): Promise<string> => {
      const end = await runProgram(codex, ['exec', '--skip-git-repo-check', '--json', ...args], {
        cwd: project,
        env: { PATH, HOME: machine.home, CODEX_HOME: home, SCRIPTED_KEY: 'none', LANG: 'C.UTF-8' },
        timeoutMs: 100_000,
      });
      expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr }).toEqual({ code: 0, stderr: '' });
      const started = end.stdout.split('\n').find((line) => line.includes('thread.started')) ?? '{}';
      return String(JSON.parse(started).thread_id);
    };
    try {
      const id = await run('go on');
      const first = await told(id, 'go on', 'read it');
      expect(first).toContain('user: go on');
      expect(first).toContain('call');
      const resumed = await run('resume', id, 'and more');
      expect(resumed).toBe(id);
      const all = await until(
        () => steps(id),
        (found) => found.length > first.length && found.at(-1)?.message?.text === 'read it',
      );
      expect(all.map(({ message }) => message?.text)).toContain('and more');
      expect(await steps(`${id}+2`)).toEqual([]);
    } finally {
      await model.close();
    }
  });
});
