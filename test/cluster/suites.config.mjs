import base from '../../jest.config.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

/** Suites of `npm test` over two nodes of one log, of which any answers each request. Not part of `npm test`. */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'several nodes',
  testMatch: ['mcp', 'harness', 'history', 'replay', 'client', 'store', 'tools', 'interop', 'bundle'].map(
    (room) => `<rootDir>/test/live/${room}/**/*.test.ts`,
  ),
  globalSetup: '<rootDir>/test/cluster/start-several.mjs',
  globalTeardown: '<rootDir>/test/cluster/stop-several.mjs',
  maxWorkers: 3,
  workerIdleMemoryLimit: base.workerIdleMemoryLimit,
  testSequencer: base.testSequencer,
  reporters: base.reporters,
  testTimeout: 600_000,
};
