import { spawn } from 'node:child_process';
import { accessSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { cliPath, temporaryRoot } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';

let home = '';
let remove: () => Promise<unknown>;

beforeEach(async () => {
  ({ root: home, remove } = await temporaryRoot());
  await mkdir(join(home, 'bin'));
  // Stands for a program that only knows its version.
  await writeFile(join(home, 'bin', 'codex'), '#!/bin/sh\necho codex-cli 1.2.3\n');
  await chmod(join(home, 'bin', 'codex'), 0o755);
});
afterEach(() => remove());

const environment = () => ({
  PATH: `${join(home, 'bin')}:/usr/bin:/bin`,
  HOME: home,
  PALIMPSEST_DATA: join(home, 'data'),
  CODEX_HOME: undefined,
  CLAUDE_CONFIG_DIR: undefined,
  XDG_CONFIG_HOME: undefined,
  PI_CODING_AGENT_DIR: undefined,
});
const setup = (...args: readonly string[]) => runCli(['setup', ...args], environment());
const config = () => join(home, '.codex', 'config.toml');
const settings = (): Promise<string> => readFile(config(), 'utf8');

/** Runs setup in a separate terminal and types an answer once the question is there. */
function inTerminal(answer: string): Promise<{ readonly code: number | null; readonly shown: string }> {
  const command = [process.execPath, cliPath, 'setup', 'codex'].map((part) => `'${part}'`).join(' ');
  const env: NodeJS.ProcessEnv = { ...process.env, ...environment(), NODE_OPTIONS: undefined, TERM: 'dumb' };
  const child = spawn('script', ['-qefc', command, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let [shown, isTyped] = ['', false];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk;
    if (isTyped || !shown.includes('[y/N]')) return;
    isTyped = true;
    child.stdin.write(answer);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, shown }));
  });
}

const hasScript = ((): boolean => {
  try {
    accessSync('/usr/bin/script');
    return true;
  } catch {
    return false;
  }
})();
const withTerminal = hasScript ? test : test.skip;

describe('palimpsest setup', () => {
  test('finds an agent, shows the change, and without a terminal changes nothing unless --yes is given', async () => {
    const asked = await setup();
    expect(asked.code).toBe(64);
    expect(asked.stdout).toMatch(/^Codex 1\.2\.3 \(\S+codex\)$/m);
    expect(asked.stdout).toContain("records Palimpsest's tools, not the agent's own tools and prompts");
    expect(asked.stdout).toContain('+[mcp_servers.ctx]');
    expect(asked.stdout).toMatch(/^Files to change:\n {2}\S+config\.toml\n {2}\S+hooks\.json\n$/m);
    const prose = asked.stdout.split('\n').filter((line) => /^ +[^ /]/.test(line));
    expect(prose.filter((line) => line.length > 100)).toEqual([]);
    expect(asked.stdout).toMatch(/start codex and type\s+\/hooks\.$/m);
    expect(asked.stderr).toContain('Nothing was changed: there is no terminal to ask on. Add --yes');
    await expect(settings()).rejects.toThrow(/ENOENT/);
    const dry = await setup('--dry-run');
    expect(dry).toMatchObject({ code: 0, stdout: asked.stdout });
    await expect(settings()).rejects.toThrow(/ENOENT/);
    expect(await setup('--yes')).toMatchObject({ code: 0, stderr: '' });
    expect(await settings()).toContain(JSON.stringify(join(home, 'data')));
    expect((await setup()).stdout).toContain('is set up already');
    const undone = await setup('--undo', '--yes');
    expect(undone).toMatchObject({ code: 0, stdout: expect.stringContaining(`undid the change of ${config()}`) });
    await expect(settings()).rejects.toThrow(/ENOENT/);
    expect((await setup('--undo', '--yes')).stdout).toContain('has no record of a setup to undo');
  });

  test('sets up the other agents if one has a file that cannot be parsed', async () => {
    await mkdir(join(home, '.codex'));
    await writeFile(config(), 'a = \n');
    const run = await setup('codex', 'gemini', 'cursor', '--yes');
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/config\.toml, line 1: .+\. The file was left as it is\./);
    expect(run.stdout).toContain('skipped: Cursor names a project folder');
    expect(await settings()).toBe('a = \n');
    expect(await readFile(join(home, '.gemini', 'settings.json'), 'utf8')).toContain('"ctx"');
  });

  test('shows a server of our name before it replaces it', async () => {
    await mkdir(join(home, '.codex'));
    await writeFile(config(), '[mcp_servers.ctx]\ncommand = "another"\n');
    const { stdout } = await setup('--yes');
    expect(stdout).toMatch(/REPLACES in \S+config\.toml\nmcp_servers\.ctx: \[mcp_servers\.ctx\]\ncommand = "another"/);
    expect(await settings()).not.toContain('another');
    await setup('--undo', '--yes');
    expect(await settings()).toBe('[mcp_servers.ctx]\ncommand = "another"\n');
  });

  test('says that no agent was found', async () => {
    const { code, stdout } = await runCli(['setup'], { ...environment(), PATH: join(home, 'data') });
    expect({ code, stdout }).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^No agent was found\. Name one/),
    });
  });

  withTerminal('asks on a terminal, and takes only yes for yes', async () => {
    for (const answer of ['\n', 'n\n', '\u0004']) {
      const { code, shown } = await inTerminal(answer);
      expect({ code, shown }).toMatchObject({ code: 0, shown: expect.stringContaining('Nothing was changed.') });
      await expect(settings()).rejects.toThrow(/ENOENT/);
    }
    expect((await inTerminal('y\n')).shown).toContain(`changed ${config()}`);
    expect(await settings()).toContain('[mcp_servers.ctx]');
  });
});
