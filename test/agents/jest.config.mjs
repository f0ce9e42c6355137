import base from '../../jest.config.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

/** Real agent programs with a scripted model, installed on first use. Not part of `npm test`. */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'agents',
  testMatch: ['<rootDir>/test/agents/**/*.test.ts'],
  testTimeout: 300_000,
};
