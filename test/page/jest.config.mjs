import base from '../../jest.config.mjs';

const [live] = base.projects.filter(({ displayName }) => displayName === 'live');

/** The review page in Debian's Chromium, over sessions recorded here. Not part of `npm test`. */
export default {
  ...live,
  rootDir: '../..',
  displayName: 'page',
  testMatch: ['<rootDir>/test/page/**/*.test.ts'],
  testTimeout: 300_000,
};
