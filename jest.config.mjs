import { availableParallelism } from 'node:os';

const base = {
  testEnvironment: '<rootDir>/test/support/one-realm-environment.mjs',
  runtime: '<rootDir>/test/support/one-realm-runtime.cjs',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
};

/**
 * Two projects. `unit` needs no JVM. `live` uses one real in-memory XTDB node, which the run starts
 * once for all workers.
 */
export default {
  projects: [
    {
      ...base,
      displayName: 'unit',
      testMatch: ['<rootDir>/test/unit/**/*.test.ts', '<rootDir>/test/architecture/**/*.test.ts'],
    },
    {
      ...base,
      displayName: 'live',
      testMatch: ['<rootDir>/test/live/**/*.test.ts', '<rootDir>/test/attack/*.test.ts'],
      globalSetup: '<rootDir>/test/support/start-node.mjs',
      globalTeardown: '<rootDir>/test/support/stop-node.mjs',
    },
  ],
  // By default Jest keeps a core for its own process, and on two cores it would run everything in
  // that one. Most live tests wait for a JVM or a file.
  maxWorkers: Math.min(8, availableParallelism() + 1),
  // Node's vm modules do not free the modules of a finished suite, so a worker that has grown is
  // replaced.
  workerIdleMemoryLimit: '1GB',
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  reporters: ['default', '<rootDir>/test/support/attack-table.mjs', '<rootDir>/test/support/closing-line.mjs'],
  // Reached only by an event that never comes. A wait with a shorter limit names what it waited
  // for.
  testTimeout: 300_000,
};
