import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { runCli } from '../../support/run-cli.js';

describe('completion for shells', () => {
  test('is a valid bash script for palimpsest', async () => {
    const { code, stdout } = await runCli(['completion', 'bash']);
    expect(code).toBe(0);
    const { stdout: told } = await promisify(execFile)('bash', ['-c', `${stdout}\ncomplete -p palimpsest`]);
    expect(told).toMatch(/^complete -F \S+ palimpsest\n$/);
  });

  test.each(['zsh', 'fish', 'powershell'])('exists for %s too', async (shell) => {
    const { code, stdout } = await runCli(['completion', shell]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('palimpsest')]);
  });

  test('offers commands, subcommands and flags', async () => {
    const offered = async (...words: string[]): Promise<readonly string[]> =>
      (await runCli(['complete', '--', ...words])).stdout.split('\n').map((line) => line.split('\t')[0] ?? '');
    expect(await offered('sh')).toContain('show');
    expect(await offered('report', '')).toEqual(expect.arrayContaining(['list', 'detail']));
    expect(await offered('log', '--')).toEqual(expect.arrayContaining(['--at', '--tx', '--json']));
  });

  test('refuses an unknown shell', async () => {
    const { code, stderr } = await runCli(['completion', 'tcsh']);
    expect([code, stderr]).toEqual([64, expect.stringContaining('zsh')]);
  });
});
