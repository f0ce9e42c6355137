import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

/** V8's own sign that a function runs as machine code that was made without optimising. */
const BASELINE = 1 << 15;

/** Whether a function that has run once is machine code, with what is done before it is used. */
const ONCE = `
  const add = (a, b) => a + b;
  add(1, 2);
  console.log((new Function('one', 'return %GetOptimizationStatus(one)')(add) & ${BASELINE}) !== 0);`;

test('a function that is used from then on is machine code when it first runs', async () => {
  await withTemporaryFolder(async (dir) => {
    const isCompiled = async (begin: string): Promise<string> => {
      const outfile = join(dir, 'run.mjs');
      const stdin = { contents: `${begin}${ONCE}`, resolveDir: import.meta.dirname };
      await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
      const flags = ['--allow-natives-syntax', '--sparkplug', outfile];
      return (await promisify(execFile)(process.execPath, flags, { env: { PATH: process.env.PATH } })).stdout.trim();
    };
    expect(await isCompiled('')).toBe('false');
    expect(await isCompiled(`import { compileEarly } from '../../../src/process/compile-early.ts'; compileEarly();`)).toBe('true');
  });
});
