import { open } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { type ProgramRun, runProgram } from '../../../../src/filesystem/search/ripgrep.js';

const NEWLINE = 10;

/** A run of a small Node program. */
const run = (program: string, options: Partial<ProgramRun> = {}): ProgramRun => ({
  binary: process.execPath,
  args: ['-e', program],
  separator: NEWLINE,
  take: () => true,
  timeoutMs: 20_000,
  ...options,
});

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const FOREVER = 'process.stdout.write(process.pid + "\\n"); setInterval(() => {}, 1000);';

describe('running a search program', () => {
  test('passes descriptors from 3 on, readable as they were opened', async () => {
    const handle = await open(new URL(import.meta.url).pathname);
    const taken: string[] = [];
    const program = `process.stdout.write(require('node:fs').readFileSync('/proc/self/fd/3', 'utf8'))`;
    const take = (record: Buffer) => taken.push(record.toString()) > 0;
    await runProgram(run(program, { descriptors: [handle.fd], take })).finally(() => handle.close());
    expect(taken).toContain("describe('running a search program', () => {");
  });

  test('delivers whole records, wherever the bytes are split', async () => {
    const taken: string[] = [];
    const program = `for (const part of ['on', 'e\\ntwo\\n', '', 'thr', 'ee\\nrest']) process.stdout.write(part);`;
    const outcome = await runProgram(
      run(program, {
        take: (record) => {
          taken.push(record.toString());
          return true;
        },
      }),
    );
    expect(taken).toEqual(['one', 'two', 'three']);
    expect(outcome).toEqual({ ended: 'exited', exitCode: 0, stderr: '', oversize: 0 });
  });

  test('counts and skips an unbounded record', async () => {
    const taken: number[] = [];
    const program = `process.stdout.write('x'.repeat(9_000_000) + '\\nshort\\n')`;
    const outcome = await runProgram(
      run(program, {
        take: (record) => {
          taken.push(record.length);
          return true;
        },
      }),
    );
    expect([taken, outcome.oversize]).toEqual([[5], 1]);
  });

  test.each(['refused', 'aborted', 'timed out'] as const)('kills a program that is %s', async (how) => {
    const abort = new AbortController();
    let pid = 0;
    const running = runProgram(
      run(FOREVER, {
        timeoutMs: how === 'timed out' ? 500 : 20_000,
        signal: abort.signal,
        take: (record) => {
          pid = Number(record.toString());
          if (how === 'aborted') abort.abort();
          return how !== 'refused';
        },
      }),
    );
    if (how === 'aborted') await expect(running).rejects.toMatchObject({ name: 'AbortError' });
    else expect((await running).ended).toBe(how === 'refused' ? 'stopped' : 'timed-out');
    if (how !== 'timed out') expect(pid).toBeGreaterThan(0);
    if (pid > 0) expect(alive(pid)).toBe(false);
  });

  test('returns exit code and error output; rejects for a missing program or a failing consumer', async () => {
    expect(await runProgram(run('console.error("no"); process.exit(3)'))).toMatchObject({
      exitCode: 3,
      stderr: 'no\n',
    });
    await expect(runProgram(run('', { binary: '/no/such/program' }))).rejects.toMatchObject({
      name: 'SourceError',
      code: 'io',
    });
    const failing = run('console.log(1)', {
      take: () => {
        throw new Error('bad record');
      },
    });
    await expect(runProgram(failing)).rejects.toThrow('bad record');
  });
});
