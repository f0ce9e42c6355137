/** How much a costly test does: the first figure in `npm test`, the second in `npm run test:long`, which runs every file that imports this. */
export const effort = (short: number, long: number): number => (process.env.PALIMPSEST_TEST_LONG === '1' ? long : short);
