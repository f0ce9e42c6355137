import base from '../../jest.config.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

/**
 * The kernel of Amplifier with our module, installed from its package index on first use. Not part
 * of `npm test`.
 */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'amplifier',
  testMatch: ['<rootDir>/test/amplifier/**/*.test.ts'],
  testTimeout: 600_000,
};
