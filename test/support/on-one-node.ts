import { test } from '@jest/globals';

/**
 * `test` for what holds over one node alone, skipped where each request may be answered by another one (`npm run test:cluster -- suites`): that counts requests, has a node of its own to kill, or reads through one client at once what another has written, which a node that
 * lags behind shows a moment later.
 */
export const onOneNode: typeof test | typeof test.skip = process.env.PALIMPSEST_TEST_NODES === 'several' ? test.skip : test;
