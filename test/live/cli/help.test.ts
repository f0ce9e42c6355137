import { describe, expect, test } from '@jest/globals';
import { runCli } from '../../support/run-cli.js';

describe('the command line program', () => {
  test('names the commands in its help', async () => {
    const { code, stdout } = await runCli(['--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: palimpsest /);
    expect(stdout).toMatch(/^ {2}node /m);
  });

  test('groups the usual commands by purpose, each group with an example', async () => {
    const { stdout } = await runCli(['--help']);
    const headings = [...stdout.matchAll(/^(\w+), such as "palimpsest .+":$/gm)].map(([, purpose]) => purpose);
    expect(headings).toEqual(['Look', 'Steer', 'Compare', 'Share', 'Operate']);
    expect(stdout).not.toMatch(/^ {2}(?:gc|journal|completion|query)\b/m);
    expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([]);
  });

  test('lists every command with `help all`', async () => {
    const { code, stdout } = await runCli(['help', 'all']);
    expect(code).toBe(0);
    for (const name of ['gc', 'journal', 'completion', 'query', 'log'])
      expect(stdout).toMatch(new RegExp(`^ {2}${name}\\b`, 'm'));
  });

  test('hides its internal command', async () => {
    const { stdout } = await runCli(['node', '--help']);
    expect(stdout).toMatch(/start.*\n[\s\S]*status[\s\S]*stop[\s\S]*logs/);
    expect(stdout).not.toContain('supervise');
  });

  test('refuses wrong flags and commands with a hint', async () => {
    const profile = await runCli(['node', 'start', '--profile', 'disk', '--json']);
    expect([profile.code, JSON.parse(profile.stdout).error]).toEqual([
      64,
      { code: 'usage', message: expect.stringContaining('memory, rocksdb') },
    ]);
  });

  test.each<[string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
    [
      'a value that is none',
      ['node', 'start', '--idle-exit', 'soon'],
      {},
      /whole number[\s\S]*See palimpsest node start --help/,
    ],
    ['a command that there is not', ['node', 'strat'], {}, /Did you mean start\?[\s\S]*See palimpsest node --help/],
    [
      'a flag that there is not',
      ['log', '--sesion', 'x'],
      {},
      /Did you mean --session\?[\s\S]*See palimpsest log --help/,
    ],
    [
      'an argument that is missing',
      ['report', 'detail'],
      {},
      /missing required argument 'session'[\s\S]*See palimpsest report detail --help/,
    ],
    ['an argument too many', ['doctor', 'all'], {}, /too many arguments[\s\S]*See palimpsest doctor --help/],
    ['no command at all', [], {}, /^Usage: palimpsest/],
    ['no command of a group', ['report'], {}, /^Usage: palimpsest report/],
    ['a profile in the environment', ['doctor'], { PALIMPSEST_PROFILE: 'tape' }, /"tape".*memory, rocksdb/],
    ['an address that is none', ['sessions'], { XTDB_URL: 'nowhere' }, /http:\/\/host:3000/],
    ['a data folder that is a file', ['doctor', '--data', process.execPath], {}, /is a file; name the data folder/],
    ['a mount that is none', ['mcp', '--mount', 'here'], {}, /AGENT=CANONICAL/],
  ])('exits with 64 and points to the help for %s', async (_, args, env, told) => {
    const { code, stdout, stderr } = await runCli(args, env);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(told);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  test.each([
    ['--help'],
    ['--version'],
    ['help'],
    ['log', '--help'],
    ['node', 'help', 'start'],
    ['report', 'list', '-h'],
  ])('prints requested help without an error: %s', async (...args) => {
    const { code, stdout, stderr } = await runCli(args);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).not.toBe('');
  });
});
