import { test } from '@jest/globals';

/**
 * `test` for properties of a single node. Skipped if each request may go to another node (`npm run
 * test:cluster -- suites`). Such tests count requests, kill their own node, or read another
 * client's write at once, which a lagging node shows later.
 */
export const onOneNode: typeof test | typeof test.skip =
  process.env.PALIMPSEST_TEST_NODES === 'several' ? test.skip : test;
