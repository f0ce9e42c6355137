import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

/** V8's flag for a function that runs as unoptimised machine code. */
const BASELINE = 1 << 15;

/** Prints whether a function is machine code after one run, with some code before its use. */
const ONCE = `
  const add = (a, b) => a + b;
  add(1, 2);
  console.log((new Function('one', 'return %GetOptimizationStatus(one)')(add) & ${BASELINE}) !== 0);`;

test('compiles a function to machine code before its first run', async () => {
  await withTemporaryFolder(async (dir) => {
    const isCompiled = async (begin: string): Promise<string> => {
      const outfile = join(dir, 'run.mjs');
      const stdin = { contents: `${begin}${ONCE}`, resolveDir: import.meta.dirname };
      await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
      const flags = ['--allow-natives-syntax', '--sparkplug', outfile];
      return (await promisify(execFile)(process.execPath, flags, { env: { PATH: process.env.PATH } })).stdout.trim();
    };
    expect(await isCompiled('')).toBe('false');
    expect(
      await isCompiled(`import { compileEarly } from '../../../src/process/compile-early.ts'; compileEarly();`),
    ).toBe('true');
  });
});
