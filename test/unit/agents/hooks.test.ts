import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Agent, Surroundings, Wanted, WayName } from '../../../src/agents/agent.js';
import { AGENTS } from '../../../src/agents/agent-table.js';
import { examineAgents } from '../../../src/agents/examine-agents.js';
import {
  hookClient,
  hookFolder,
  makeHookFolder,
  markReached,
  watchSocket,
  writeStart,
} from '../../../src/agents/hooks/hook-folder.js';
import { installHookClient } from '../../../src/agents/hooks/install-client.js';
import { keptChanges } from '../../../src/agents/kept-changes.js';
import { applyPlanned, planSetup } from '../../../src/agents/plan-setup.js';
import { serverCommand } from '../../../src/agents/server-command.js';
import { applyUndo, planUndo } from '../../../src/agents/take-back.js';

let home = '';
let dataDir = '';
let at: Surroundings;

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'hooks-')));
  dataDir = join(home, 'my data');
  const cwd = join(home, 'project');
  await mkdir(cwd);
  await mkdir(join(home, 'bin'));
  at = { env: { PATH: `${home}/bin:/usr/bin:/bin` }, home, platform: 'linux', cwd };
});
afterEach(() => rm(home, { recursive: true }));

const agentOf = (id: string): Agent => AGENTS.find((agent) => agent.id === id) as Agent;

async function wantedOf(agent: Agent, changes: Partial<Wanted> = {}): Promise<Wanted> {
  const program = { packageFolder: '/opt/palimpsest', node: '/usr/bin/node' };
  const server = await serverCommand(agent, 'user', { at, data: { dataDir, isDefault: false }, program });
  return { at, scope: 'user', server, packageFolder: program.packageFolder, dataDir, isDataNamed: false, ...changes };
}

async function setUp(id: string, ways: readonly WayName[]): Promise<void> {
  const agent = agentOf(id);
  const plan = await planSetup(agent, ways, { wanted: await wantedOf(agent), dataDir });
  if ('refused' in plan) throw new Error(plan.refused);
  for (const planned of plan) await applyPlanned(planned, dataDir);
}

async function undo(): Promise<void> {
  for (const change of [...(await keptChanges(dataDir))].reverse())
    await applyUndo(await planUndo(change, dataDir), dataDir);
}

async function put(path: string, value: object | string): Promise<void> {
  const whole = join(home, path);
  await mkdir(dirname(whole), { recursive: true });
  await writeFile(whole, typeof value === 'string' ? value : JSON.stringify(value, null, 2));
}
const read = async (path: string) => JSON.parse(await readFile(join(home, path), 'utf8'));

const FILES = { claude: '.claude/settings.json', codex: '.codex/hooks.json', gemini: '.gemini/settings.json' } as const;
const OTHER = { hooks: [{ type: 'command', command: 'say done' }] };

describe.each(Object.entries(FILES))('hooks of %s', (id, path) => {
  const event = id === 'gemini' ? 'BeforeTool' : 'PreToolUse';

  test('are added beside all other hooks, and removed again', async () => {
    await put(path, { hooks: { [event]: [OTHER], Notification: [OTHER] } });
    const before = await readFile(join(home, path), 'utf8');
    await setUp(id, ['hooks']);
    const { hooks } = await read(path);
    expect(hooks[event]).toHaveLength(2);
    expect(hooks[event][0]).toEqual(OTHER);
    expect(hooks.Notification).toEqual([OTHER]);
    const command = hooks[event][1].hooks[0].command as string;
    expect(command).toMatch(/^'\S+\/my data\/hooks\/palimpsest-hook' (?:claude-code|codex|gemini-cli) '.+' 200$/);

    // The user adds a hook after the setup.
    hooks[event].push(OTHER);
    await put(path, { hooks });
    await undo();
    expect((await read(path)).hooks).toEqual({ [event]: [OTHER, OTHER], Notification: [OTHER] });
    await put(path, before);
  });

  test('stay when only the server is set up again, and the server stays with the hooks', async () => {
    await setUp(id, ['mcp', 'hooks']);
    const both = await read(path);
    await setUp(id, ['mcp']);
    expect(await read(path)).toEqual(both);
    await setUp(id, ['hooks']);
    expect(await read(path)).toEqual(both);
    await undo();
    await expect(stat(join(home, path))).rejects.toThrow(/ENOENT/);
  });

  test('are for the user’s own settings, and not for Windows yet', async () => {
    const agent = agentOf(id);
    const refused = async (changes: Partial<Wanted>) =>
      planSetup(agent, ['hooks'], { wanted: await wantedOf(agent, changes), dataDir });
    expect(await refused({ scope: 'project' })).toMatchObject({ refused: expect.stringContaining('--project') });
    expect(await refused({ at: { ...at, platform: 'win32' } })).toMatchObject({
      refused: expect.stringContaining('Windows'),
    });
  });
});

describe('the client of hooks', () => {
  /** Makes a folder that looks like the installed program. */
  async function programWith(source: string | undefined): Promise<string> {
    const folder = join(home, 'program');
    await mkdir(join(folder, 'dist'), { recursive: true });
    if (source !== undefined) await writeFile(join(folder, 'dist', 'palimpsest-hook.c'), source);
    await writeFile(join(folder, 'dist', 'palimpsest-hook.mjs'), 'console.log("from the script", process.argv[2]);\n');
    return folder;
  }
  const run = (...args: readonly string[]): string =>
    execFileSync(hookClient(dataDir), [...args], { encoding: 'utf8' });

  /** A compiler that makes a script of its source's first line. */
  async function compiler(exit = 0): Promise<void> {
    const path = join(home, 'bin', 'cc');
    await writeFile(path, `#!/bin/sh\nfor last; do :; done\nhead -1 "$last" > "$6"\nexit ${exit}\n`);
    await chmod(path, 0o755);
    at = { ...at, env: { PATH: `${home}/bin:/usr/bin:/bin` } };
  }

  test('comes from the package of the platform', async () => {
    const packageFolder = await programWith(undefined);
    const from = join(packageFolder, 'node_modules', '@palimpsest', `node-${process.platform}-${process.arch}`);
    await mkdir(join(from, 'bin'), { recursive: true });
    await writeFile(join(from, 'package.json'), '{}');
    await writeFile(join(from, 'bin', 'palimpsest-hook'), '#!/bin/sh\necho native $1\n', { mode: 0o755 });
    expect(await installHookClient(dataDir, { packageFolder, at })).toBe('package');
    expect(run('codex')).toBe('native codex\n');
    expect((await stat(hookClient(dataDir))).mode & 0o777).toBe(0o700);
    expect((await stat(hookFolder(dataDir))).mode & 0o777).toBe(0o700);
  });

  test('is compiled where no package has it', async () => {
    await compiler();
    const packageFolder = await programWith('#!/bin/sh');
    expect(await installHookClient(dataDir, { packageFolder, at })).toBe('compiled');
    expect(await readFile(hookClient(dataDir), 'utf8')).toBe('#!/bin/sh');
  });

  test('is a script without a working compiler, and silent when the program is gone', async () => {
    await compiler(1);
    const packageFolder = await programWith('int main(void) {}');
    expect(await installHookClient(dataDir, { packageFolder, at })).toBe('script');
    expect(run('codex')).toBe('from the script codex\n');
    await rm(packageFolder, { recursive: true });
    expect(run('codex')).toBe('');
  });

  test('learns how to start the watcher, one word a line', async () => {
    await writeStart(dataDir, ['/usr/bin/node', '/opt/cli.js', 'watch', '--data', dataDir]);
    expect(await readFile(join(hookFolder(dataDir), 'start'), 'utf8')).toBe(
      `/usr/bin/node\n/opt/cli.js\nwatch\n--data\n${dataDir}\n`,
    );
    await expect(writeStart(dataDir, ['a\nb'])).rejects.toThrow(/line break/);
  });
});

describe('doctor', () => {
  const findings = async () => {
    const [codex] = await examineAgents({
      at,
      packageFolder: '/opt/palimpsest',
      data: { dataDir, isDefault: false },
    });
    return codex?.findings;
  };
  const failed = (reason: string): Promise<void> => writeFile(join(hookFolder(dataDir), 'unreached'), `${reason}\n`);

  beforeEach(async () => {
    await put('.codex/config.toml', '');
    await setUp('codex', ['hooks']);
    await makeHookFolder(dataDir);
  });

  test('reports hooks that never reached the watcher, until one does', async () => {
    expect(await findings()).toEqual([['agent-hook-silent', expect.stringMatching(/^Codex, .*type \/hooks$/)]]);
    await markReached(dataDir, 'claude-code', new Date());
    expect(await findings()).toEqual([['agent-hook-silent', expect.stringMatching(/^Codex, .*type \/hooks$/)]]);
    await markReached(dataDir, 'codex', new Date());
    expect(await findings()).toEqual([]);
  });

  test('reports a hook that found no watcher, unless one listens now', async () => {
    await markReached(dataDir, 'codex', new Date());
    await failed('nothing listens on watch.sock');
    expect(await findings()).toEqual([
      ['agent-hook-unreached', expect.stringMatching(/^Codex: nothing listens on watch\.sock at .+ no event arrived/)],
    ]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(watchSocket(dataDir), resolve));
    expect(await findings()).toEqual([]);
    // If the watcher runs, a late answer is a failure.
    await failed('late');
    expect(await findings()).toMatchObject([['agent-hook-unreached', expect.stringContaining('late')]]);
    // A late answer is no failure while a hook starts the watcher.
    await writeFile(join(hookFolder(dataDir), 'starting'), '');
    expect(await findings()).toEqual([]);
    await new Promise((resolve) => server.close(resolve));
    await markReached(dataDir, 'codex', new Date());
    expect(await findings()).toEqual([]);
  });
});
