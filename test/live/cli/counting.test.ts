import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deserialize } from 'node:v8';
import { describe, expect, test } from '@jest/globals';
import ranks from 'gpt-tokenizer/bpeRanks/o200k_base';
import { CountingThread } from '../../../src/cli/review/counting-thread.js';
import { countHere } from '../../../src/history/ask/token-count.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

const root = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));
const review = join(root, 'dist', 'review');
const ask = join(root, 'src', 'history', 'ask');
const TEXTS = [
  ...readdirSync(ask).map((name) => readFileSync(join(ask, name), 'utf8')),
  'あいうえお 漢字 👩‍👩‍👧 ß é',
  '<|endoftext|>',
  '\u0000\u0001 a\ud83d',
  'a'.repeat(5_000),
  '',
];

async function countedBy(program: string): Promise<readonly number[]> {
  const thread = new CountingThread(program);
  try {
    return await thread.count(TEXTS);
  } finally {
    thread.end();
  }
}

describe('the built thread that counts', () => {
  test('has the vocabulary of the library', () => {
    expect(deserialize(readFileSync(join(review, 'o200k_base.ranks')))).toEqual(ranks);
  });

  test('counts to the token what is counted here', async () => {
    expect(await countedBy(join(review, 'count-tokens.js'))).toEqual(await countHere(TEXTS));
  });

  test('takes the module of the library where the packed vocabulary cannot be read', async () => {
    await withTemporaryFolder(async (folder) => {
      const copy = join(folder, 'review');
      cpSync(review, copy, { recursive: true });
      cpSync(join(root, 'package.json'), join(folder, 'package.json'));
      rmSync(join(copy, 'o200k_base.ranks'));
      expect(await countedBy(join(copy, 'count-tokens.js'))).toEqual(await countHere(TEXTS));
    });
  });
});
