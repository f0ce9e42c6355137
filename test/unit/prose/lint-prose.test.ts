import { expect, test } from '@jest/globals';
// @ts-expect-error The checks of this repository are plain JavaScript.
import { lintCode, lintMarkdown } from '../../../scripts/prose/lint-prose.mjs';

const messages = async (text: string): Promise<readonly string[]> =>
  ((await lintMarkdown('page.md', text)) as { message: string }[]).map(({ message }) => message);

const LONG = `The store ${'keeps every version and '.repeat(8)}returns it.`;

test.each([
  ['How long somebody who does not read may take until he is let go of.', ['"somebody"', '"let go"']],
  ['The whole of an HTTP answer, before anybody was told of it.', ['"told"']],
  ['What was accepted is delivered in order.', ['a statement begins with "What"']],
  ['A log that takes more than this is dearer to read.', ['"dearer"']],
  [LONG, ['a sentence of']],
  [`| ${LONG} |`, ['a sentence of']],
])('rejects the old sentence %j', async (text, expected) => {
  const found = await messages(text);
  for (const part of expected) expect(found.join('\n')).toContain(part);
});

test.each([
  'Maximum time a client may leave its socket undrained before the server closes it.',
  'A raw HTTP response, not yet validated.',
  'What does a call cost?',
  'The field `told` counts what `nobody` reads.',
  `${'The outbox delivers a step once it is in the journal. '.repeat(2)}`.trim(),
])('accepts %j', async (text) => {
  expect(await messages(text)).toEqual([]);
});

test('reads comments, messages and test names of a source file, with their lines', async () => {
  const source = [
    '/** Whoever asks gets an answer. */',
    'const a = 1;',
    "test('nobody reads this name', () => {});",
    'throw new Error(`what it was told is not so`);',
  ].join('\n');
  const found = (await lintCode('a.ts', source)) as { line: number; message: string }[];
  expect(found.map(({ line, message }) => [line, message.split(':')[0]])).toEqual([
    [1, '"Whoever"'],
    [3, '"nobody"'],
    [4, '"told"'],
  ]);
});

test('reads the text of markup as one sentence, with a word for each element inside', async () => {
  const source = 'const a = (\n  <p>\n    Nobody sent <code>{hash}</code> to\n    the reader.\n  </p>\n);';
  const found = (await lintCode('a.tsx', source)) as { line: number; message: string }[];
  expect(found.map(({ line, message }) => [line, message.split(':')[0]])).toEqual([[3, '"Nobody"']]);
});

test('reports comments beyond 100 columns and code beyond 120', async () => {
  const source = [`// ${'word '.repeat(21)}`.trim(), `const a = '${'x-y-'.repeat(30)}';`].join('\n');
  const found = (await lintCode('a.ts', source)) as { line: number; message: string }[];
  expect(found.map(({ line, message }) => [line, message])).toEqual([
    [1, 'a line of 107 columns: at most 100'],
    [2, 'a line of 133 columns: at most 120'],
  ]);
});

test('reports long lines of Markdown, but not of its front matter', async () => {
  const long = 'word '.repeat(30).trim();
  const found = await lintMarkdown('a.md', `---\nname: ${long}\n---\n\n${long}\n`);
  const columns = (found as { line: number; message: string }[]).filter(({ message }) => message.includes('columns'));
  expect(columns.map(({ line }) => line)).toEqual([5]);
});
