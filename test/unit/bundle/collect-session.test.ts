import { expect, test } from '@jest/globals';
import { numberOf } from '../../../src/bundle/collect-session.js';

test('counts a basis separately in imported and own transactions, even if the own ones are older', () => {
  const transactions = [10, 12, 5, 20].map((here) => ({ tx: here, time: new Date(0), here, places: [] }));
  const numbers = [4, 9, 10, 11, 12, 13, 20, 21].map((txId) => numberOf({ transactions, imported: 2 }, txId));
  expect(numbers).toEqual([0, 0, 1, 1, 2, 3, 4, 4]);
  expect([4, 5, 30].map((txId) => numberOf({ transactions: transactions.slice(2), imported: 0 }, txId))).toEqual([
    0, 1, 2,
  ]);
});
