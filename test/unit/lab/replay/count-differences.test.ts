import { expect, test } from '@jest/globals';
import { countDifferences } from '../../../../src/lab/experiments/listed-counts.js';

const counts = {
  items: 20,
  calls: 9,
  read_files: 6,
  shell_reads: 2,
  attached_files: 1,
  main: { items: 12, calls: 5, reads: 4 },
};
const report = (given: Partial<typeof counts> = {}, agents = 0, bytes = 1_000) =>
  ({
    recording: { bytes },
    recorded: { ...counts, ...given },
    sessions: [{ relation: undefined }, ...Array.from({ length: agents }, () => ({ relation: 'subagent' }))],
  }) as unknown as Parameters<typeof countDifferences>[0];
const listed = (given: Partial<Parameters<typeof countDifferences>[1]> = {}) => ({
  bytes: 1_000,
  messages: 20,
  calls: 9,
  reads: 6,
  ...given,
});

test('finds no differences between equal counts', () => {
  expect(countDifferences(report(), listed())).toEqual([]);
});

test('separates the work of sub-agents exactly where the list counts the conversation alone', () => {
  expect(countDifferences(report({}, 2), listed({ messages: 12, calls: 5, reads: 4 }))).toEqual([
    'items 20, listed 12: 12 in the conversation itself, as listed, and 8 in 2 sub-agents, separate sessions here',
    'calls 9, listed 5: 5 in the conversation itself, as listed, and 4 in 2 sub-agents, separate sessions here',
    'reads 6, listed 4: 4 in the conversation itself, as listed, and 2 in 2 sub-agents, separate sessions here',
  ]);
  expect(countDifferences(report({}, 2), listed({ calls: 6 }))).toEqual(['calls 9, listed 6: unexplained']);
  expect(countDifferences(report(), listed({ calls: 5 }))).toEqual(['calls 9, listed 5: unexplained']);
});

test('recognises by its size a file other than the counted one', () => {
  expect(countDifferences(report(), listed({ bytes: 5_000, messages: 100 }))).toEqual([
    'items 20, listed 100: counted in a file of 5000 bytes; the file here has 1000',
  ]);
});

test.each([
  [4, '4 by reading tools, as listed, and 2 by command lines that print a file'],
  [7, '6 by calls, and 1 attached to a prompt: listed as reads, no calls here'],
  [
    9,
    '4 by reading tools and 2 by command lines that print a file; the list has 5 of the latter: the list does not ' +
      'say which commands it counts',
  ],
])('adds up reads that are listed as %i', (reads, reason) => {
  expect(countDifferences(report(), listed({ reads }))).toEqual([`reads 6, listed ${reads}: ${reason}`]);
});
