import { describe, expect, test } from '@jest/globals';
import { runCli } from '../../support/run-cli.js';

describe('the command line program', () => {
  test('its help names the commands', async () => {
    const { code, stdout } = await runCli(['--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: palimpsest /);
    expect(stdout).toMatch(/^ {2}node /m);
  });

  test('the command that only the program itself runs is not shown', async () => {
    const { stdout } = await runCli(['node', '--help']);
    expect(stdout).toMatch(/start.*\n[\s\S]*status[\s\S]*stop[\s\S]*logs/);
    expect(stdout).not.toContain('supervise');
  });

  test('wrong flags and commands are refused with a hint', async () => {
    const flag = await runCli(['node', 'start', '--idle-exit', 'soon']);
    expect([flag.code, flag.stderr]).toEqual([1, expect.stringContaining('whole number')]);
    const command = await runCli(['node', 'strat']);
    expect([command.code, command.stderr]).toEqual([1, expect.stringContaining('start')]);
    const profile = await runCli(['node', 'start', '--profile', 'disk', '--json']);
    expect(JSON.parse(profile.stdout).error.message).toContain('memory, rocksdb');
  });
});
