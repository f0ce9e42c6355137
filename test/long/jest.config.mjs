import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import base from '../../jest.config.mjs';

const tests = dirname(dirname(fileURLToPath(import.meta.url)));
const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

const share = Number(process.env.PALIMPSEST_TEST_SHARE ?? 1);
const figure = (text) => Number(text.replaceAll('_', ''));

/** Returns whether a suite does more here than in `npm test`, by its calls of `effort`. */
const doesMore = (source) =>
  source.includes('/support/effort.js') &&
  [...source.matchAll(/\beffort\(([\d_]+), ([\d_]+)\)/g)].some(
    ([, short, long]) => figure(long) < figure(short) || Math.round(figure(long) * share) > figure(short),
  );

const scaled = readdirSync(tests, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts') && doesMore(readFileSync(join(tests, name), 'utf8')))
  .map((name) => `<rootDir>/test/${name}`);

process.env.PALIMPSEST_TEST_LONG = '1';
// On disk, as users run it, because all of these suites together write too much for memory.
process.env.PALIMPSEST_TEST_PROFILE ??= 'rocksdb';

/**
 * The suites that take too long for `npm test`: those of this folder, and others with their second
 * figure of effort.
 */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'long',
  testMatch: ['<rootDir>/test/long/**/*.test.ts', ...scaled],
  maxWorkers: base.maxWorkers,
  workerIdleMemoryLimit: base.workerIdleMemoryLimit,
  testSequencer: base.testSequencer,
  reporters: base.reporters,
  testTimeout: 1_800_000,
};
