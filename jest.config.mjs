const base = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
};

/** Two projects: `unit` needs no JVM, `live` runs on one real in-memory XTDB node that the suite starts once. */
export default {
  projects: [
    { ...base, displayName: 'unit', testMatch: ['<rootDir>/test/unit/**/*.test.ts', '<rootDir>/test/architecture/**/*.test.ts'] },
    {
      ...base,
      displayName: 'live',
      testMatch: ['<rootDir>/test/live/**/*.test.ts'],
      globalSetup: '<rootDir>/test/support/start-node.mjs',
      globalTeardown: '<rootDir>/test/support/stop-node.mjs',
    },
  ],
  reporters: ['default', '<rootDir>/test/support/closing-line.mjs'],
  testTimeout: 30_000,
};
