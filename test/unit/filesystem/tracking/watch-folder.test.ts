import { unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type FolderWatch, watchFolder, watchPlain } from '../../../../src/filesystem/tracking/watch-folder.js';
import { until } from '../../../support/until.js';
import { type TempFolder, tempFolder } from '../temp-folder.js';

let temp: TempFolder;
let names: (string | undefined)[];
let watch: FolderWatch;

beforeEach(async () => {
  temp = await tempFolder();
  names = [];
  watch = await watchFolder(temp.inside, (name) => names.push(name));
});
afterEach(async () => {
  await watch.close();
  await temp.remove();
});

/** chokidar reads the whole folder at each event, and only once for several files together. */
const AT_ONCE = 50;

/** Creates the files in groups, and waits after each group until the watch has reported all. */
async function make(...files: readonly string[]): Promise<void> {
  for (let from = 0; from < files.length; from += AT_ONCE) {
    const some = files.slice(from, from + AT_ONCE);
    await Promise.all(some.map((name) => writeFile(join(temp.inside, name), 'x')));
    await until(
      () => names,
      (told) => some.every((name) => told.includes(name)),
    );
  }
}

const numbered = (mark: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${mark}-${n}.txt`);

describe('the watch of a folder (decision 0006)', () => {
  test('switches to the plain watch for a crowded folder, and reports every name before, during, after', async () => {
    expect(watch.kind).toBe('chokidar');
    const many = numbered('many', 300);
    await make(...many);
    await until(
      () => watch.kind,
      (kind) => kind === 'plain',
    );
    await make('after.txt');
    expect(new Set(names)).toEqual(new Set([...many, 'after.txt']));
  });

  test('keeps its mode while names come and go', async () => {
    for (const round of [1, 2, 3]) {
      const some = numbered(`temporary-${round}`, 100);
      await make(...some);
      await Promise.all(some.map((name) => unlink(join(temp.inside, name))));
    }
    await make('kept.txt');
    expect([watch.kind, new Set(names).size]).toEqual(['chokidar', 301]);
  });

  test('closes once, also during the switch', async () => {
    const many = numbered('many', 251);
    await make(...many);
    await Promise.all([watch.close(), watch.close()]);
    names = [];
    await writeFile(join(temp.inside, 'later.txt'), 'x');
    await writeFile(join(temp.inside, 'many-0.txt'), 'y');
    const other = await watchPlain(temp.inside, (name) => names.push(`other ${name}`));
    await writeFile(join(temp.inside, 'last.txt'), 'x');
    await until(
      () => names,
      (told) => told.includes('other last.txt'),
    );
    await other.close();
    expect(names.filter((name) => name?.startsWith('other') !== true)).toEqual([]);
  });
});
