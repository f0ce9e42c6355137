import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const MIB = 1_048_576;

/**
 * Prints the maximum size of the young generation in MiB, in a process whose objects all survive
 * for a while.
 */
const SURVIVING = `
  import { getHeapSpaceStatistics } from 'node:v8';
  const young = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size;
  let [largest, kept] = [0, []];
  for (let round = 0; round < 400; round++) {
    kept = Array.from({ length: 20_000 }, (_, n) => ({ n, round }));
    largest = Math.max(largest, young());
    await new Promise((resolve) => setImmediate(resolve));
  }
  console.log(Math.round(largest / ${MIB}) + (kept.length > 0 ? '' : '!'));`;

test('keeps the young generation near its bound without keeping the process alive', async () => {
  await withTemporaryFolder(async (dir) => {
    const largest = async (begin: string): Promise<number> => {
      const outfile = join(dir, 'run.mjs');
      const stdin = { contents: `${begin}${SURVIVING}`, resolveDir: import.meta.dirname };
      await build({ stdin, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
      return Number(
        (await promisify(execFile)(process.execPath, [outfile], { env: { PATH: process.env.PATH } })).stdout,
      );
    };
    expect(await largest('')).toBeGreaterThanOrEqual(16);
    expect(
      await largest(
        "import { limitYoungGeneration } from '../../../src/cli/young-generation.ts'; limitYoungGeneration(4 * " +
          `${MIB});`,
      ),
    ).toBeLessThanOrEqual(8);
  });
});
