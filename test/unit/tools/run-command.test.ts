import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { type CommandOptions, runCommand } from '../../../src/tools/run-command.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const run = (command: string, options: Partial<CommandOptions> = {}) =>
  runCommand({
    command,
    cwd: '/',
    timeoutMs: 240_000,
    signal: new AbortController().signal,
    mostBytes: 1_000_000,
    ...options,
  });

/** Returns whether a process runs. A zombie does not. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z');
}

describe('a shell command', () => {
  test('returns its output in order, both streams, and its exit code', async () => {
    expect(await run('echo one; echo two >&2; exit 3')).toMatchObject({
      output: expect.stringMatching(/one\n|two\n/),
      exitCode: 3,
      why: 'exited',
    });
    expect(await run('true')).toMatchObject({ output: '', exitCode: 0 });
  });

  test('is killed with all its children at its time limit', async () => {
    const { output, why } = await run('sleep 60 & echo $!; echo $$; wait', { timeoutMs: 4_000 });
    expect(why).toBe('timeout');
    const pids = output.trim().split('\n').map(Number);
    expect(pids).toHaveLength(2);
    expect(pids.map(isRunning)).toEqual([false, false]);
  });

  test('is killed when the caller gives up, even if it ignores signals', async () => {
    await withTemporaryFolder(async (folder) => {
      const controller = new AbortController();
      const watcher = watch(folder);
      const began = once(watcher, 'change');
      const running = run("trap '' TERM; touch began; sleep 60", { cwd: folder, signal: controller.signal });
      await began;
      watcher.close();
      controller.abort();
      expect(await running).toMatchObject({ why: 'cancelled', killedBy: 'SIGKILL' });
    });
  });

  test('does not delay the answer for a background process', async () => {
    const { output } = await run('sleep 900 & echo $!');
    // It still runs.
    expect(process.kill(Number(output), 'SIGKILL')).toBe(true);
  });

  test.each([0, 1, 2, 3])('cuts its output between characters, %d bytes before them', async (count) => {
    const program = `process.stdout.write('x'.repeat(${count}) + '€'.repeat(200000))`;
    const { output } = await run(`'${process.execPath}' -e "${program}"`, { mostBytes: 2_000 });
    expect(output).toMatch(/^x*€+\n\[\.\.\. \d+ bytes of output dropped \.\.\.\]\n€+$/);
  });

  test('keeps the beginning and the end of excessive output', async () => {
    const { output } = await run('seq 1 100000', { mostBytes: 2_000 });
    expect(Number(/\[\.\.\. (\d+) bytes of output dropped/.exec(output)?.[1])).toBeGreaterThan(500_000);
    expect(output.startsWith('1\n2\n')).toBe(true);
    expect(output.endsWith('99999\n100000\n')).toBe(true);
    expect(output.length).toBeLessThan(100_000);
  });

  test('is an error if it cannot start', async () => {
    await expect(run('true', { cwd: '/does/not/exist' })).rejects.toThrow(/ENOENT/);
  });
});
