import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import base from '../../jest.config.mjs';
import { BOUNDARIES, reachesOthers } from './boundaries.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

const tests = fileURLToPath(new URL('..', import.meta.url));
const rootDir = join(tests, '..');
const suites = Object.values(BOUNDARIES).flat();
const missing = suites.filter((suite) => !existsSync(join(tests, `${suite}.test.ts`)));
if (missing.length > 0)
  throw new Error(`test/attack/boundaries.mjs names suites that do not exist: ${missing.join(', ')}`);
const pathsOf = (some) => some.map((suite) => `<rootDir>/test/${suite}.test.ts`);

process.env.PALIMPSEST_TEST_LONG = '1';
process.env.PALIMPSEST_TEST_BESIDE = '1';
// 20,000 calls would fill the heap of an in-memory node.
process.env.PALIMPSEST_TEST_PROFILE = 'rocksdb';

/**
 * Runs every attack at full size. Attacks on a shared server or node run one at a time, beside a
 * session that reads all the while. Attacks with processes and files of their own run in parallel.
 */
export default {
  rootDir,
  projects: [
    {
      ...live,
      rootDir,
      displayName: 'attack',
      runner: '<rootDir>/test/support/one-at-a-time.mjs',
      testMatch: ['<rootDir>/test/attack/*.test.ts', ...pathsOf(suites.filter(reachesOthers))],
    },
    {
      ...live,
      rootDir,
      displayName: 'attack-apart',
      testMatch: ['<rootDir>/test/attack/long/*.test.ts', ...pathsOf(suites.filter((suite) => !reachesOthers(suite)))],
    },
  ],
  maxWorkers: availableParallelism() + 1,
  workerIdleMemoryLimit: base.workerIdleMemoryLimit,
  reporters: base.reporters,
  testTimeout: 1_800_000,
};
