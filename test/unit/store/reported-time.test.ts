import { expect, test } from '@jest/globals';
import { toJson } from '../../../src/review/ask/run-query.js';
import { reportedTime } from '../../../src/store/object-store.js';
import { END_OF_TIME } from '../../../src/xtdb/transactions.js';

test('reports every moment except the end of time', () => {
  const moment = new Date('2026-11-21T14:05:30.123Z');
  expect(reportedTime(moment)).toEqual(moment);
  expect(reportedTime(END_OF_TIME)).toBeUndefined();
  expect(reportedTime(new Date('9999-12-31T00:00:00.000Z'))).toBeUndefined();
  expect(toJson([moment, END_OF_TIME])).toEqual([moment.toISOString(), null]);
});
