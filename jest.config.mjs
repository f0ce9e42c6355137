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

/** Two projects: `unit` needs no JVM, `live` runs on one real in-memory XTDB node that the run starts once, for all its workers. */
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
  // By itself Jest leaves a core to its own process and then runs everything in that one where there are two. Most live tests wait for a JVM or a file.
  maxWorkers: Math.min(8, availableParallelism() + 1),
  // The modules of a finished suite are not given back by Node's vm modules; a worker that has grown is replaced.
  workerIdleMemoryLimit: '1GB',
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  reporters: ['default', '<rootDir>/test/support/attack-table.mjs', '<rootDir>/test/support/closing-line.mjs'],
  // Only what never happens may take so long: a wait that has a limit of its own says what it waited for.
  testTimeout: 300_000,
};
