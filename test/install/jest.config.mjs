import base from '../../jest.config.mjs';

const [unit] = base.projects.filter(({ displayName }) => displayName === 'unit');

/** The packages as a user installs them. Packing takes minutes, so `npm test` leaves them out. */
export default {
  ...unit,
  rootDir: '../..',
  displayName: 'install',
  testMatch: ['<rootDir>/test/install/**/*.test.ts'],
  globalSetup: '<rootDir>/test/install/pack.mjs',
  globalTeardown: '<rootDir>/test/install/remove-packages.mjs',
  maxWorkers: 1,
  // A former version installs its packages and builds its node.
  testTimeout: 900_000,
};
