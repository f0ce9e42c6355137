import { expect, test } from '@jest/globals';
import { ReplayTally } from '../../../../src/lab/replay/replay-tally.js';

test('tools are counted whatever they are called', () => {
  const tally = new ReplayTally();
  const tools = ['read', 'constructor', 'toString', '__proto__', 'constructor'];
  for (const [i, tool] of tools.entries()) {
    tally.take({ kind: 'call', session: 's', place: `line ${i + 1}`, call_id: `c${i}`, tool, args: {} });
  }
  expect(Object.entries(tally.tools)).toEqual([
    ['read', 1],
    ['constructor', 2],
    ['toString', 1],
    ['__proto__', 1],
  ]);
  expect(JSON.parse(JSON.stringify(tally.tools)).constructor).toBe(2);
});
