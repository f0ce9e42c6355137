import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { runCli } from '../../support/run-cli.js';

describe('completion for shells', () => {
  test('the script of bash can be read by bash and speaks for palimpsest', async () => {
    const { code, stdout } = await runCli(['completion', 'bash']);
    expect(code).toBe(0);
    const { stdout: told } = await promisify(execFile)('bash', ['-c', `${stdout}\ncomplete -p palimpsest`]);
    expect(told).toMatch(/^complete -F \S+ palimpsest\n$/);
  });

  test.each(['zsh', 'fish', 'powershell'])('%s has one too', async (shell) => {
    const { code, stdout } = await runCli(['completion', shell]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('palimpsest')]);
  });

  test('commands, their commands and flags are offered', async () => {
    const offered = async (...words: string[]): Promise<readonly string[]> =>
      (await runCli(['complete', '--', ...words])).stdout.split('\n').map((line) => line.split('\t')[0] ?? '');
    expect(await offered('sh')).toContain('show');
    expect(await offered('report', '')).toEqual(expect.arrayContaining(['list', 'detail']));
    expect(await offered('log', '--')).toEqual(expect.arrayContaining(['--at', '--tx', '--json']));
  });

  test('an unknown shell is refused', async () => {
    const { code, stderr } = await runCli(['completion', 'tcsh']);
    expect([code, stderr]).toEqual([64, expect.stringContaining('zsh')]);
  });
});
