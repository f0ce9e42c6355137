import { execFileSync } from 'node:child_process';
import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LiveFile } from '../../../src/watch/live-file.js';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'palimpsest-unit-'));
  path = join(folder, 'a.jsonl');
  await writeFile(path, 'one\n');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Reads a growing file and collects its chunks; a rest is `-`. */
async function read(live: LiveFile) {
  const got: string[] = [];
  const source = await live.source();
  const ended = (async () => {
    for await (const chunk of source.open()) got.push(chunk.length === 0 ? '-' : chunk.toString());
  })();
  ended.catch(() => undefined);
  return { got, ended };
}

const LONG = { restMs: 60_000, idleMs: 60_000 };

describe('a file that grows', () => {
  test('delivers its bytes and a pause to all callers that wait for its current end', async () => {
    const live = new LiveFile(path, LONG);
    const { got, ended } = await read(live);
    await live.caughtUp();
    await appendFile(path, 'two\n');
    await live.caughtUp();
    await live.caughtUp();
    expect(got).toEqual(['one\n', '-', 'two\n', '-']);
    expect(live.read.size).toBe(8);
    live.end();
    await ended;
  });

  test('reports a pause after a short silence, and ends after a longer one', async () => {
    const { got, ended } = await read(new LiveFile(path, { restMs: 5, idleMs: 40 }));
    await ended;
    expect(got).toEqual(['one\n', '-']);
  });

  test.each([
    ['cut', () => truncate(path, 2)],
    ['written anew with a longer text', () => writeFile(path, 'other and longer\n')],
    [
      'replaced by another file',
      async () => {
        await writeFile(`${path}.new`, 'one\ntwo\n');
        await rename(`${path}.new`, path);
      },
    ],
  ])('ends with an error when it was %s', async (_how, change) => {
    const live = new LiveFile(path, LONG);
    const { ended } = await read(live);
    await live.caughtUp();
    await change();
    await expect(live.caughtUp()).rejects.toThrow('has ended');
    await expect(ended).rejects.toThrow(/was rewritten at byte 4 or before/);
  });

  test.each([
    ['gone', async () => undefined],
    ['a pipe without a writer', async () => execFileSync('mkfifo', [path])],
  ])('ends when it is %s, and rejects those who wait', async (_what, place) => {
    const live = new LiveFile(path, LONG);
    const { ended } = await read(live);
    await live.caughtUp();
    await rm(path);
    await place();
    await expect(live.caughtUp()).rejects.toThrow('has ended');
    await ended;
  });
});
