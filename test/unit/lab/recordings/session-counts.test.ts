import { expect, test } from '@jest/globals';
import { SessionCounts } from '../../../../src/lab/recordings/import-counts.js';

test('counts tools of any name', () => {
  const counts = new SessionCounts();
  const tools = ['read', 'constructor', 'toString', '__proto__', 'constructor'];
  for (const [i, tool] of tools.entries()) {
    counts.add({ kind: 'call', session: 's', place: `line ${i + 1}`, call_id: `c${i}`, tool, args: {} });
  }
  expect(Object.entries(counts.tools)).toEqual([
    ['read', 1],
    ['constructor', 2],
    ['toString', 1],
    ['__proto__', 1],
  ]);
  expect(JSON.parse(JSON.stringify(counts.tools)).constructor).toBe(2);
});
