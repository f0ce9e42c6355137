import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BareHome, type Ended } from './bare-home.js';
import { OWN, tarball } from './packages.js';

/** A settings file of an agent that a setup changes. */
interface Settings {
  /** Relative to the home. */
  readonly path: string;
  /** Settings of the user, with comments where the format has some. */
  readonly mine: string;
  readonly broken: string;
  readonly flags?: readonly string[];
}

const JSON_MINE = '{\n  "mine": [1, 2]\n}\n';
const JSONC_MINE = '{\n  // mine\n  "mine": [1, 2], /* kept */\n}\n';
const JSON_BROKEN = '{"mine": [1, 2}\n';

/** Every agent with the file that has our entry. */
const AGENTS: Readonly<Record<string, Settings>> = {
  claude: { path: '.claude.json', mine: JSON_MINE, broken: JSON_BROKEN },
  codex: {
    path: '.codex/config.toml',
    mine: '# mine\nmodel = "x" # fast\n\n[tui] # kept\ntheme = "dark"\n',
    broken: 'model = \n',
  },
  opencode: { path: '.config/opencode/opencode.json', mine: JSONC_MINE, broken: JSON_BROKEN },
  gemini: { path: '.gemini/settings.json', mine: JSONC_MINE, broken: JSON_BROKEN },
  pi: { path: '.pi/agent/settings.json', mine: JSON_MINE, broken: JSON_BROKEN },
  vscode: { path: '.config/Code/User/mcp.json', mine: JSONC_MINE, broken: JSON_BROKEN },
  cursor: { path: '.cursor/mcp.json', mine: JSON_MINE, broken: JSON_BROKEN, flags: ['--project'] },
  cline: { path: '.cline/data/settings/cline_mcp_settings.json', mine: JSON_MINE, broken: JSON_BROKEN },
};

let user: BareHome;
beforeAll(async () => {
  user = await BareHome.make();
  await user.install(tarball(), tarball(OWN));
});
afterAll(() => user.remove());

/** The files of the home by path, without npm's and those of the data folder. */
async function filesAtHome(): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(user.home, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const others = paths.filter((path) => !/^\/\.(?:npm|local|cache)\//.test(path.slice(user.home.length)));
  return Object.fromEntries(
    await Promise.all(
      others.map(async (path) => [path.slice(user.home.length + 1), await readFile(path, 'utf8')] as const),
    ),
  );
}

describe.each(Object.entries(AGENTS))('palimpsest setup %s', (name, { path, mine, broken, flags = [] }) => {
  const file = (): string => join(user.home, path);
  const put = async (text: string): Promise<void> => {
    await mkdir(dirname(file()), { recursive: true });
    await writeFile(file(), text);
  };
  const setup = (...more: readonly string[]): Promise<Ended> =>
    user.palimpsest(['setup', name, ...flags, '--yes', ...more]);
  const expectDone = ({ code, stderr }: Ended): void => expect({ code, stderr }).toEqual({ code: 0, stderr: '' });

  test('makes a missing file, and its undo leaves none', async () => {
    const before = await filesAtHome();
    expectDone(await setup());
    expect(await readFile(file(), 'utf8')).toContain('palimpsest');
    expectDone(await setup('--undo'));
    expect(await filesAtHome()).toEqual(before);
  });

  test('keeps comments and values of a file, and its undo restores it byte for byte', async () => {
    await put(mine);
    const before = await filesAtHome();
    expectDone(await setup());
    const changed = await readFile(file(), 'utf8');
    expect(changed).toContain('palimpsest');
    for (const line of mine.split('\n').filter((one) => /mine|fast|kept/.test(one)))
      expect(changed.replaceAll(',', '')).toContain(line.trim().replaceAll(',', ''));
    const { code, stdout } = await setup();
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('is set up already') });
    expect(await readFile(file(), 'utf8')).toBe(changed);
    expectDone(await setup('--undo'));
    expect(await filesAtHome()).toEqual(before);
    await rm(file());
  });

  test('leaves a broken file alone, and says where it is broken', async () => {
    await put(broken);
    const before = await filesAtHome();
    const { code, stderr } = await setup();
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/line 1.*left as it is/s) });
    expect(stderr).toContain(path.split('/').at(-1));
    expect(await filesAtHome()).toEqual(before);
    await rm(file());
  });
});

test('palimpsest uninstall restores the settings of every agent', async () => {
  for (const { path, mine } of Object.values(AGENTS)) {
    await mkdir(dirname(join(user.home, path)), { recursive: true });
    await writeFile(join(user.home, path), mine);
  }
  const before = await filesAtHome();
  for (const [name, { flags = [] }] of Object.entries(AGENTS))
    await user.palimpsest(['setup', name, ...flags, '--yes']);
  const { code, stdout } = await user.palimpsest(['uninstall', '--data']);
  expect(code).toBe(0);
  for (const { path } of Object.values(AGENTS))
    expect(stdout).toContain(`Undid the change of ${join(user.home, path)}.`);
  expect(await filesAtHome()).toEqual(before);
});
