/**
 * Returns the effort of a costly test: the first figure in `npm test`, the second in `npm run
 * test:long`. The latter runs every file that imports this function.
 */
export const effort = (short: number, long: number): number =>
  process.env.PALIMPSEST_TEST_LONG === '1' ? long : short;
