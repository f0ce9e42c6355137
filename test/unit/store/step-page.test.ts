import { expect, test } from '@jest/globals';
import { saysTheSame } from '../../../src/store/step-page.js';
import type { StoredDocument } from '../../../src/xtdb/documents.js';

const page = (text: unknown): StoredDocument => ({
  'xt/id': 'p',
  type: 'steps',
  text: typeof text === 'string' ? text : JSON.stringify(text),
});
const steps = [[1, { at: 1 }]];
const [a, b] = [
  [{ 'xt/id': 'a', tool: 'x' }, {}],
  [{ 'xt/id': 'b', tool: 'y' }, { size: 1 }],
];

test.each([
  ['itself', { steps, calls: [a, b] }, true],
  ['its calls in another order', { steps, calls: [b, a] }, true],
  ['its keys in another order', { calls: [a, b], steps }, true],
  ['a call less', { steps, calls: [a] }, false],
  ['another call', { steps, calls: [a, [{ 'xt/id': 'b', tool: 'z' }, { size: 1 }]] }, false],
  ['its steps in another order', { steps: [[2, {}], ...steps], calls: [a, b] }, false],
  ['no JSON', '{', false],
  ['a list', [], false],
])('a page and %s', (_what, other, same) => {
  expect(saysTheSame(page({ steps, calls: [a, b] }), page(other))).toBe(same);
});

test('a page differs from a missing page', () => {
  expect(saysTheSame(page({ steps, calls: [a, b] }), undefined)).toBe(false);
});
