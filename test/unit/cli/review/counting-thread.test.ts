import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CountingThread } from '../../../../src/cli/review/counting-thread.js';

describe('a thread that counts', () => {
  let folder: string;
  const program = (name: string, text: string): string => {
    const file = join(folder, `${name}.mjs`);
    writeFileSync(file, text);
    return file;
  };

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'palimpsest-counting-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('answers each list with its own counts, also those that were asked for before it was ready', async () => {
    const thread = new CountingThread(
      program(
        'counts',
        "import { parentPort } from 'node:worker_threads';\nparentPort.on('message', (texts) => parentPort.postMessage(texts.map(({ length }) => length)));\n",
      ),
    );
    expect(await Promise.all([thread.count(['a', 'bb']), thread.count([]), thread.count(['ccc'])])).toEqual([[1, 2], [], [3]]);
    expect(await thread.count(['dddd'])).toEqual([4]);
    thread.end();
  });

  test.each([
    ['is not there', () => join(folder, 'none.mjs'), /^tokens cannot be counted: Cannot find module/],
    ['fails', () => program('fails', "throw new Error('no memory');\n"), /^tokens cannot be counted: no memory$/],
    ['ends', () => program('ends', 'process.exit(0);\n'), /^tokens cannot be counted: the thread that counts has ended$/],
  ])('one that %s rejects what waits, and what is asked later', async (_, file, message) => {
    const thread = new CountingThread(file());
    await expect(thread.count(['a'])).rejects.toThrow(message);
    await expect(thread.count(['b'])).rejects.toThrow(message);
    thread.end();
  });
});
