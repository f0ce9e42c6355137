import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import base from '../../jest.config.mjs';
import { BOUNDARIES } from './boundaries.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

const tests = fileURLToPath(new URL('..', import.meta.url));
const suites = Object.values(BOUNDARIES)
  .flat()
  .map((suite) => `${suite}.test.ts`);
const missing = suites.filter((suite) => !existsSync(join(tests, suite)));
if (missing.length > 0) throw new Error(`test/attack/boundaries.mjs names suites that do not exist: ${missing.join(', ')}`);

process.env.PALIMPSEST_TEST_LONG = '1';
process.env.PALIMPSEST_TEST_BESIDE = '1';
// What 20,000 calls leave behind would fill the heap of a node that keeps its data in memory.
process.env.PALIMPSEST_TEST_PROFILE = 'rocksdb';

/** Every attack at its full size, one at a time, beside a session that reads all the while. */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'attack',
  testMatch: ['<rootDir>/test/attack/**/*.test.ts', ...suites.map((suite) => `<rootDir>/test/${suite}`)],
  maxWorkers: 1,
  workerIdleMemoryLimit: base.workerIdleMemoryLimit,
  reporters: base.reporters,
  testTimeout: 1_800_000,
};
