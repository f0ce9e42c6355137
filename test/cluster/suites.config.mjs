import base from '../../jest.config.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

/** Suites that are too long for `npm test`. They run here with their first figure of effort. */
const LONG = [
  'client/interleavings',
  'client/ahead',
  'client/tracked-burst',
  'history/query-documents',
  'replay/large-recordings',
  'contracts/cortexfs-import',
  'bundle/bad-input',
];

/**
 * Suites of `npm test`, and some long ones, over two nodes of one log. Either node answers each
 * request. Not part of `npm test`.
 */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'several nodes',
  testMatch: [
    ...['mcp', 'harness', 'history', 'replay', 'client', 'store', 'tools', 'contracts', 'bundle'].map(
      (room) => `<rootDir>/test/live/${room}/**/*.test.ts`,
    ),
    ...LONG.map((suite) => `<rootDir>/test/long/${suite}.test.ts`),
  ],
  globalSetup: '<rootDir>/test/cluster/start-several.mjs',
  globalTeardown: '<rootDir>/test/cluster/stop-several.mjs',
  maxWorkers: 3,
  workerIdleMemoryLimit: base.workerIdleMemoryLimit,
  testSequencer: base.testSequencer,
  reporters: base.reporters,
  testTimeout: 600_000,
};
