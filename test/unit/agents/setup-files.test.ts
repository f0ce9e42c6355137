import { execFileSync } from 'node:child_process';
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type {
  Agent,
  FileEdit,
  Scope,
  ServerCommand,
  Surroundings,
  Wanted,
  WayName,
} from '../../../src/agents/agent.js';
import { AGENTS } from '../../../src/agents/agent-table.js';
import { type KeptChange, keepChange, keptChanges } from '../../../src/agents/kept-changes.js';
import { applyPlanned, planSetup } from '../../../src/agents/plan-setup.js';
import { serverCommand, type ThisProgram } from '../../../src/agents/server-command.js';
import { AGENT_NAMES } from '../../../src/agents/setup-command.js';
import { applyUndo, planUndo } from '../../../src/agents/take-back.js';

let home = '';
let dataDir = '';
let at: Surroundings;

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), 'agents-')));
  dataDir = join(home, 'data');
  const cwd = join(home, 'project');
  await mkdir(cwd);
  at = { env: {}, home, platform: 'linux', cwd };
});
afterEach(() => rm(home, { recursive: true }));

const PROGRAM: ThisProgram = { packageFolder: '/opt/palimpsest', node: '/usr/bin/node' };

async function wantedOf(agent: Agent, scope: Scope = 'user'): Promise<Wanted> {
  const server = await serverCommand(agent, scope, { at, data: { dataDir, isDefault: false }, program: PROGRAM });
  return { at, scope, server, packageFolder: PROGRAM.packageFolder, dataDir, isDataNamed: false };
}

async function planOf(agent: Agent, way: WayName, scope: Scope = 'user') {
  const plan = await planSetup(agent, [way], { wanted: await wantedOf(agent, scope), dataDir });
  if ('refused' in plan) throw new Error(plan.refused);
  return plan;
}

async function setUp(agent: Agent, way: WayName, scope: Scope = 'user'): Promise<void> {
  for (const planned of await planOf(agent, way, scope)) await applyPlanned(planned, dataDir);
}

async function undo(): Promise<readonly string[]> {
  const left: string[] = [];
  for (const change of [...(await keptChanges(dataDir))].reverse()) {
    const plan = await planUndo(change, dataDir);
    left.push(...plan.left);
    await applyUndo(plan, dataDir);
  }
  return left;
}

/** Returns every file below the home folder with its bytes, without the data folder. */
async function everything(): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  const found = await Promise.all(
    entries.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      if (path.startsWith(dataDir)) return [];
      return [
        [path, entry.isFile() ? await readFile(path, 'latin1') : entry.isDirectory() ? 'folder' : await readlink(path)],
      ];
    }),
  );
  return Object.fromEntries(found.flat()) as Record<string, string>;
}

/** Every agent with each of its ways in, in the settings of the user and of a project. */
const WAYS = AGENTS.flatMap((agent) =>
  (['user', 'project'] as const).flatMap((scope) =>
    (Object.keys(agent.ways) as WayName[]).flatMap((way) =>
      (agent.id === 'cursor' && scope === 'user') || ((agent.id === 'cline' || way === 'hooks') && scope === 'project')
        ? []
        : [{ agent, scope, way, name: `${agent.id}, ${way}, ${scope}` }],
    ),
  ),
);

async function editsOf({ agent, scope, way }: (typeof WAYS)[number]): Promise<readonly FileEdit[]> {
  const edits = agent.ways[way]?.edits(await wantedOf(agent, scope));
  if (edits === undefined || 'refused' in edits) throw new Error(`${agent.id} has no edits`);
  return edits;
}

async function put(path: string, text: string, mode = 0o600): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { mode });
  await chmod(path, mode);
}

/** Files that agents may have, by format. */
const TEXTS: Readonly<Record<FileEdit['format'], Readonly<Record<string, string>>>> = {
  json: {
    empty: '',
    plain: '{\n  "theme": "dark",\n  "permissions": {\n    "ask": ["WebFetch"]\n  }\n}\n',
    commented: '// mine\n{\n\t"theme": "dark", // at night\n\t/* soon */\n}\n',
    'with CRLF': '{\r\n    "theme": "dark"\r\n}\r\n',
    'with a byte order mark': '\ufeff{\n  "theme": "dark"\n}',
    'in one line': '{"theme":"dark"}',
  },
  toml: {
    empty: '',
    plain: 'model = "x"\n\n[mcp_servers.other]\ncommand = "y"\n',
    commented: '# mine\nmodel = "x" # fast\n\n# others\n[other] # too\na = [ 1, # one\n  2 ]',
    'with CRLF': '# mine\r\nmodel = "x"\r\n',
    'with a byte order mark': '\ufeffmodel = "x"\n',
    'in one line': 'mcp_servers = { other = { command = "y" } }',
  },
};

describe.each(WAYS)('$name', (one) => {
  const { agent, scope, way } = one;

  test('creates missing files and folders, and undo removes them', async () => {
    const before = await everything();
    await setUp(agent, way, scope);
    for (const { paths } of await editsOf(one))
      expect(await readFile(paths[0], 'utf8')).toMatch(/palimpsest|mcp__ctx__/);
    expect(await planOf(agent, way, scope)).toEqual([]);
    await undo();
    expect(await everything()).toEqual(before);
    expect(await keptChanges(dataDir)).toEqual([]);
  });

  test.each(Object.keys(TEXTS.json))('undo restores a file byte for byte: %s', async (kind) => {
    for (const { paths, format } of await editsOf(one)) await put(paths[0], TEXTS[format][kind] ?? '', 0o640);
    const before = await everything();
    await setUp(agent, way, scope);
    for (const { paths } of await editsOf(one)) expect((await stat(paths[0])).mode & 0o777).toBe(0o640);
    expect(await everything()).not.toEqual(before);
    await undo();
    expect(await everything()).toEqual(before);
  });

  test('does not change a file that it cannot parse, and names line and reason', async () => {
    for (const { paths } of await editsOf(one)) await put(paths[0], '\n{ "a": [\n = }\n');
    const before = await everything();
    await expect(planOf(agent, way, scope)).rejects.toThrow(/, line \d: .+ The file was left as it is\. Correct it/);
    expect(await everything()).toEqual(before);
  });

  test('writes to the target of a symbolic link, and keeps the link', async () => {
    const edits = await editsOf(one);
    // A project's links must lead to files of the project.
    const dotfile = (i: number): string => join(scope === 'project' ? at.cwd : home, `dotfiles/${i}`);
    for (const [i, { paths, format }] of edits.entries()) {
      await put(dotfile(i), TEXTS[format].plain ?? '');
      await mkdir(dirname(paths[0]), { recursive: true });
      await symlink(dotfile(i), paths[0]);
    }
    const before = await everything();
    await setUp(agent, way, scope);
    for (const [i, { paths }] of edits.entries()) {
      expect((await lstat(paths[0])).isSymbolicLink()).toBe(true);
      expect(await readFile(dotfile(i), 'utf8')).toMatch(/palimpsest|mcp__ctx__/);
    }
    await undo();
    expect(await everything()).toEqual(before);
  });
});

describe('hostile settings', () => {
  const claude = AGENTS.find(({ id }) => id === 'claude') as Agent;
  const codex = AGENTS.find(({ id }) => id === 'codex') as Agent;
  const file = (): string => join(home, '.claude.json');

  test('of a project are refused if a link leads out of it', async () => {
    await put(join(home, 'other.json'), '{}');
    await mkdir(join(home, 'elsewhere'));
    const before = await everything();
    await symlink(join(home, 'other.json'), join(at.cwd, '.mcp.json'));
    await expect(planOf(claude, 'mcp', 'project')).rejects.toThrow(/its links lead to \S+other\.json, out of the proj/);
    await rm(join(at.cwd, '.mcp.json'));
    await symlink(join(home, 'elsewhere'), join(at.cwd, '.claude'));
    await expect(planOf(claude, 'mcp', 'project')).rejects.toThrow(/elsewhere\/settings\.json, out of the project/);
    await rm(join(at.cwd, '.claude'));
    expect(await everything()).toEqual(before);
  });

  test('of a project are not followed by undo if they became a link after setup', async () => {
    await setUp(claude, 'mcp', 'project');
    const text = await readFile(join(at.cwd, '.mcp.json'), 'utf8');
    await put(join(home, 'other.json'), text);
    await rm(join(at.cwd, '.mcp.json'));
    await symlink(join(home, 'other.json'), join(at.cwd, '.mcp.json'));
    await expect(undo()).rejects.toThrow(/out of the project/);
    expect(await readFile(join(home, 'other.json'), 'utf8')).toBe(text);
  });

  test('are refused if they are a pipe, a device or a folder', async () => {
    execFileSync('mkfifo', [file()]);
    await expect(planOf(claude, 'mcp')).rejects.toThrow(/it is not a file/);
    await rm(file());
    await symlink('/dev/zero', file());
    await expect(planOf(claude, 'mcp')).rejects.toThrow(/it is not a file/);
    await rm(file());
    await mkdir(file());
    await expect(planOf(claude, 'mcp')).rejects.toThrow(/it is a folder/);
  });

  test('are refused if they are huge or nested very deeply', async () => {
    await put(file(), '');
    await truncate(file(), 2 ** 33);
    await expect(planOf(claude, 'mcp')).rejects.toThrow(/it has 8589934592 bytes/);
    await put(file(), '['.repeat(500_000));
    await expect(planOf(claude, 'mcp')).rejects.toThrow(/too many levels|expected/);
    await put(file(), `{"a": ${'['.repeat(200_000)}${']'.repeat(200_000)}}`);
    await expect(planOf(claude, 'mcp')).rejects.toThrow(/too many levels/);
  });

  test('in TOML are read in linear time', async () => {
    const long = `[ a${' '.repeat(200_000)}b`;
    await put(join(home, '.codex', 'config.toml'), `x = """\n${long}\n"""\n[mcp_servers.ctx]\ncommand = "y"\n`);
    expect((await planOf(codex, 'mcp'))[0]?.after).toContain(long);
  });
});

describe('every agent', () => {
  const texts = (agent: Agent): Promise<readonly string[]> =>
    planOf(agent, Object.keys(agent.ways)[0] as WayName, agent.id === 'cursor' ? 'project' : 'user').then((plan) =>
      plan.map(({ after }) => after),
    );

  test('has a name on the command line', () => {
    expect(AGENTS.map(({ id }) => id)).toEqual([...AGENT_NAMES]);
  });

  test('gets a server command with the data folder and --short-ids', async () => {
    for (const agent of AGENTS.filter(({ ways }) => Object.keys(ways)[0] === 'mcp')) {
      const [text] = await texts(agent);
      expect(text).toMatch(/"--data",\s*"[^"]+\/data",\s*"--short-ids"/);
    }
  });

  test('asks before our tools change a file', async () => {
    const all = Object.fromEntries(
      await Promise.all(AGENTS.map(async (agent) => [agent.id, (await texts(agent)).join('')])),
    );
    for (const tool of ['write', 'edit', 'bash']) {
      expect(all.claude).toMatch(new RegExp(`"ask": \\[[^\\]]*"mcp__ctx__${tool}"`));
      expect(all.codex).toContain(`[mcp_servers.ctx.tools.${tool}]\napproval_mode = "prompt"\n`);
      expect(all.opencode).toContain(`"ctx_${tool}": "ask"`);
    }
    expect(all.gemini).not.toContain('trust');
    expect(JSON.parse(all.cline)).toMatchObject({ mcpServers: { ctx: { autoApprove: [] } } });
    const [server] = await planOf(AGENTS.find(({ id }) => id === 'pi') as Agent, 'mcp');
    expect(server?.after).toContain('"--read-only"');
  });

  test('follows the variables that move its settings', async () => {
    const moved = {
      CLAUDE_CONFIG_DIR: 'a',
      CODEX_HOME: 'b',
      XDG_CONFIG_HOME: 'c',
      GEMINI_CLI_HOME: 'd',
      PI_CODING_AGENT_DIR: 'e',
      CLINE_DIR: 'f',
    };
    at = { ...at, env: Object.fromEntries(Object.entries(moved).map(([name, folder]) => [name, join(home, folder)])) };
    for (const agent of AGENTS.filter(({ id }) => id !== 'cursor'))
      await setUp(agent, Object.keys(agent.ways)[0] as WayName);
    const files = (await keptChanges(dataDir)).map(({ path }) => path.slice(home.length + 1));
    expect(files.sort()).toEqual(
      [
        'a/.claude.json',
        'a/settings.json',
        'b/config.toml',
        'c/Code/User/mcp.json',
        'c/opencode/opencode.json',
        'd/.gemini/settings.json',
        'e/settings.json',
        'f/data/settings/cline_mcp_settings.json',
      ].sort(),
    );
  });
});

describe('a setup', () => {
  const claude = AGENTS.find(({ id }) => id === 'claude') as Agent;
  const opencode = AGENTS.find(({ id }) => id === 'opencode') as Agent;
  const file = (): string => join(home, '.claude.json');

  async function plansFor(command: ServerCommand) {
    const plan = await planSetup(claude, ['mcp'], {
      wanted: { ...(await wantedOf(claude)), server: () => command },
      dataDir,
    });
    if ('refused' in plan) throw new Error(plan.refused);
    return plan;
  }

  test('keeps a copy of the file, named by its hash and readable only by the user', async () => {
    await put(file(), '{"secret": "s"}');
    await setUp(claude, 'mcp');
    const record = (await keptChanges(dataDir)).find(({ path }) => path === file());
    const backup = join(dataDir, 'agents', `${record?.before}.backup`);
    expect(await readFile(backup, 'utf8')).toBe('{"secret": "s"}');
    expect((await stat(backup)).mode & 0o777).toBe(0o600);
  });

  test('shows the entry that it replaces', async () => {
    await put(file(), '{"mcpServers": {"ctx": {"command": "other"}}}');
    expect((await planOf(claude, 'mcp'))[0]?.replaced).toEqual(['mcpServers.ctx: {"command": "other"}']);
  });

  test('can be undone completely after a second setup with another data folder', async () => {
    await put(file(), '{\n  "a": 1\n}\n');
    const before = await everything();
    await setUp(claude, 'mcp');
    const kept = dataDir;
    const plan = await planSetup(claude, ['mcp'], {
      wanted: {
        ...(await wantedOf(claude)),
        server: () => ({ command: 'palimpsest', args: ['mcp', '--data', '/else'] }),
      },
      dataDir: kept,
    });
    if ('refused' in plan) throw new Error(plan.refused);
    expect(plan).toHaveLength(1);
    for (const planned of plan) await applyPlanned(planned, kept);
    expect(await readFile(file(), 'utf8')).toContain('/else');
    await undo();
    expect(await everything()).toEqual(before);
  });

  test('changes nothing if the file changed after it was shown', async () => {
    await put(file(), '{}');
    const plan = await planOf(claude, 'mcp');
    await put(file(), '{"later": 1}');
    await expect(applyPlanned(plan[0] as (typeof plan)[number], dataDir)).rejects.toThrow(/changed meanwhile/);
    expect(await readFile(file(), 'utf8')).toBe('{"later": 1}');
    expect(await undo()).toEqual([]);
    expect(await readFile(file(), 'utf8')).toBe('{"later": 1}');
  });

  test('that fails because another setup came first keeps the record of that setup', async () => {
    await put(file(), '{}');
    const [late] = await planOf(claude, 'mcp');
    const [theirs] = await plansFor({ command: 'palimpsest', args: ['mcp', '--short-ids'] });
    await applyPlanned(theirs as never, dataDir);
    await expect(applyPlanned(late as never, dataDir)).rejects.toThrow(/changed meanwhile/);
    expect(await undo()).toEqual([]);
    expect(await readFile(file(), 'utf8')).toBe('{}');
  });

  test.each(['{}', '{"mcpServers": {"ctx": {"command": "mine"}}}'])(
    'can be undone after a second setup was killed between its record and its write: %s',
    async (text) => {
      await put(file(), text);
      await setUp(claude, 'mcp');
      const [first] = await keptChanges(dataDir);
      const now = await readFile(file(), 'utf8');
      const [second] = await plansFor({ command: 'palimpsest', args: ['mcp', '--data', '/else'] });
      await applyPlanned(second as never, dataDir);
      // The state of a process that was killed before its write.
      const [record] = (await keptChanges(dataDir)).filter(({ path }) => path === file());
      const { after, made } = first as KeptChange;
      await keepChange(dataDir, { ...(record as KeptChange), earlier: { after, made } }, text);
      for (const killed of [now, now.replace('{', '{ "later": 1,')]) {
        await put(file(), killed);
        const [change] = (await keptChanges(dataDir)).filter(({ path }) => path === file());
        const plan = await planUndo(change as KeptChange, dataDir);
        expect(plan.left).toEqual([]);
        expect(plan.after).not.toContain('--short-ids');
        expect(plan.after).toContain(text.includes('mine') ? 'mine' : '{');
      }
    },
  );

  test('is not undone if the file changed after the undo was planned', async () => {
    await setUp(claude, 'mcp');
    const [change] = (await keptChanges(dataDir)).filter(({ path }) => path === file());
    const plan = await planUndo(change as KeptChange, dataDir);
    expect(plan.after).toBeUndefined();
    await put(file(), '{"later": 1}');
    await expect(applyUndo(plan, dataDir)).rejects.toThrow(/changed meanwhile/);
    expect(await readFile(file(), 'utf8')).toBe('{"later": 1}');
  });

  test('can be undone twice, and after its file was deleted', async () => {
    const before = await everything();
    await setUp(claude, 'mcp');
    await rm(file());
    expect(await undo()).toEqual([]);
    expect(await undo()).toEqual([]);
    expect(await everything()).toEqual(before);
  });

  test('undo removes only our entries if the file changed since', async () => {
    await setUp(claude, 'mcp');
    const text = await readFile(file(), 'utf8');
    await put(file(), text.replace('{\n', '{\n  "numStartups": 3,\n'));
    await undo();
    expect(await readFile(file(), 'utf8')).toBe('{\n  "numStartups": 3\n}\n');
  });

  test('undo leaves and names an entry that runs another program now', async () => {
    await setUp(claude, 'mcp');
    await put(file(), '{"mcpServers": {"ctx": {"command": "other"}}}');
    expect(await undo()).toEqual(['mcpServers.ctx']);
    expect(await readFile(file(), 'utf8')).toContain('other');
  });

  test('writes to the opencode.jsonc that exists', async () => {
    const path = join(home, '.config', 'opencode', 'opencode.jsonc');
    await put(path, '{\n  // mine\n}\n');
    await setUp(opencode, 'mcp');
    expect(await readFile(path, 'utf8')).toContain('// mine');
    expect((await keptChanges(dataDir)).map((change) => change.path)).toEqual([path]);
  });

  test('refuses bytes that are not text', async () => {
    await mkdir(dirname(file()), { recursive: true });
    await writeFile(file(), Buffer.from([0x7b, 0xff, 0x7d]));
    await expect(planOf(claude, 'mcp')).rejects.toThrow(/it is not text in UTF-8. It was left as it is/);
  });

  test('refuses a data folder whose name an agent would expand, and a program that npm may clear', async () => {
    const given = { at, data: { dataDir, isDefault: false }, program: PROGRAM };
    await expect(
      serverCommand(claude, 'user', { ...given, data: { dataDir: '/a/{env:HOME}/b', isDefault: false } }),
    ).rejects.toThrow(/as a variable. Name another data folder with --data/);
    await expect(
      serverCommand(claude, 'user', { ...given, program: { ...PROGRAM, packageFolder: '/x/.npm/_npx/1/palimpsest' } }),
    ).rejects.toThrow(/which npm may clear. Run npm install --global palimpsest first/);
  });

  test('names the data folder in shared settings only if it is not the default', async () => {
    const given = { at, program: PROGRAM };
    const args = async (scope: Scope, isDefault: boolean) =>
      (await serverCommand(claude, scope, { ...given, data: { dataDir, isDefault } }))().args.includes('--data');
    expect(await Promise.all([args('project', true), args('project', false), args('user', true)])).toEqual([
      false,
      true,
      true,
    ]);
  });

  test('uses the short name of the program if it is on the PATH of a shell', async () => {
    const packageFolder = join(home, 'lib', 'palimpsest');
    await put(join(packageFolder, 'dist', 'cli.js'), '#!/usr/bin/env node\n', 0o755);
    await mkdir(join(home, 'bin'));
    await symlink(join(packageFolder, 'dist', 'cli.js'), join(home, 'bin', 'palimpsest'));
    at = { ...at, env: { PATH: join(home, 'bin') } };
    const given = { at, data: { dataDir, isDefault: true }, program: { ...PROGRAM, packageFolder } };
    const command = async (agent: Agent | undefined) => (await serverCommand(agent as Agent, 'user', given))().command;
    expect(await command(claude)).toBe('palimpsest');
    expect(await command(AGENTS.find(({ id }) => id === 'vscode'))).toBe('/usr/bin/node');
  });

  test('is undone byte for byte for any file', async () => {
    const text = fc.oneof(
      fc.json({ maxDepth: 3 }).filter((one) => one.startsWith('{')),
      fc.constantFrom(
        '',
        '{}',
        '{\n}',
        '// x\n',
        '{ /* y */ }',
        '{"mcpServers":{}}\n',
        '{\n\t"mcpServers": {\n\t},\n}',
      ),
    );
    await fc.assert(
      fc.asyncProperty(text, async (before) => {
        await put(file(), before);
        const plan = await planOf(claude, 'mcp').catch((error: Error) => error.message);
        if (typeof plan !== 'string') for (const planned of plan) await applyPlanned(planned, dataDir);
        await undo();
        expect(await readFile(file(), 'utf8')).toBe(before);
      }),
      { numRuns: 60 },
    );
  });
});
