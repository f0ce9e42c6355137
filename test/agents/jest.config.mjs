import base from '../../jest.config.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

/**
 * The newest agent programs with a scripted model, installed on first use. Not part of `npm test`.
 */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'agents',
  globalSetup: '<rootDir>/test/agents/start.mjs',
  testMatch: ['<rootDir>/test/agents/**/*.test.ts'],
  testTimeout: 300_000,
};
