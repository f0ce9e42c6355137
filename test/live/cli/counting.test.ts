import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import ranks from 'gpt-tokenizer/bpeRanks/o200k_base';
import { loadScript } from '../../../src/process/compiled-script.js';
import { openRanks, packRanks } from '../../../src/review/ask/rank-table.js';
import { countTokens } from '../../../src/review/ask/token-count.js';

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const ask = join(root, 'src', 'review', 'ask');
const TEXTS = [
  ...readdirSync(ask).map((name) => readFileSync(join(ask, name), 'utf8')),
  'あいうえお 漢字 👩‍👩‍👧 ß é',
  '<|endoftext|>',
  '\u0000\u0001 a\ud83d',
  'a'.repeat(5_000),
  '',
];

type Counting = Pick<typeof import('../../../src/review/ask/token-count.js'), 'countTokens'>;

const fileOf = (folder: string, name: RegExp): string =>
  join(root, 'dist', folder, readdirSync(join(root, 'dist', folder)).find((file) => name.test(file)) ?? '');

describe.each([
  ['of a verb', async () => loadScript(fileOf('review', /^token-count-\w+\.cjs$/)).exports],
  ['of the other programs', async () => import(pathToFileURL(fileOf('chunks', /^token-count-\w+\.js$/)).href)],
])('the built vocabulary %s', (_, load) => {
  let built: Counting;
  beforeAll(async () => {
    built = (await load()) as Counting;
  });

  test('counts exactly like the library with its own list', () => {
    expect(TEXTS.map(built.countTokens)).toEqual(TEXTS.map(countTokens));
  });

  test('also counts unusual texts exactly', () => {
    const texts = fc.array(fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 40 })), {
      minLength: 1,
    });
    fc.assert(
      fc.property(
        texts.map((pieces) => pieces.join('')),
        (text) => built.countTokens(text) === countTokens(text),
      ),
      { numRuns: 500 },
    );
  });
});

test('packs the list of the library', () => {
  const packed = readFileSync(join(root, 'dist', 'review', 'o200k_base.ranks'));
  expect(packed.equals(packRanks(ranks))).toBe(true);
  expect(openRanks(packed).get(' the')).toBe(ranks.indexOf(' the'));
});
