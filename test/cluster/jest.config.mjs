import base from '../../jest.config.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

/** Nodes over a PostgreSQL and a Kafka broker, which the tests start. Not part of `npm test`. */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'cluster',
  testMatch: ['<rootDir>/test/cluster/**/*.test.ts'],
  globalSetup: '<rootDir>/test/cluster/start-servers.mjs',
  globalTeardown: '<rootDir>/test/cluster/stop-servers.mjs',
  // Each suite starts a server and several nodes, which compile many classes.
  maxWorkers: 1,
  reporters: base.reporters,
  testTimeout: 600_000,
};
