/** The part of the long figure that is run, from 0 to 1. `.ci/run` has a limit of time. */
const SHARE = Number(process.env.PALIMPSEST_TEST_SHARE ?? 1);

/**
 * Returns the effort of a costly test: the first figure in `npm test`, the second in `npm run
 * test:long`. The latter runs every file that imports this function. With PALIMPSEST_TEST_SHARE it
 * is that part of the second figure, and at least the first. It then runs only files that do more
 * than in `npm test`. So a call outside of `test/long` has literal figures.
 */
export const effort = (short: number, long: number): number =>
  process.env.PALIMPSEST_TEST_LONG !== '1' ? short : long <= short ? long : Math.max(short, Math.round(long * SHARE));
