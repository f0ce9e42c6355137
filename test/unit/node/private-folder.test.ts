import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { isOwnEntry, requireInProfile } from '../../../src/node/private-folder.js';

test('all entries that the sources name in a data folder are its own, which uninstall removes', async () => {
  const src = join(import.meta.dirname, '..', '..', '..', 'src');
  const files = (await readdir(src, { recursive: true })).filter((name) => name.endsWith('.ts'));
  const texts = await Promise.all(files.map((name) => readFile(join(src, name), 'utf8')));
  const named = texts.flatMap((text) => [...text.matchAll(/join\(dataDir, '([^']+)'/g)].map(([, name = '']) => name));
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !isOwnEntry(name))).toEqual([]);
});

const HOME = 'C:\\Users\\me';

describe('the data folder on Windows', () => {
  test.each(['C:\\Users\\me\\AppData\\Local\\palimpsest', 'c:\\users\\ME\\p', HOME, 'C:\\Users\\me\\..data'])(
    '%s is in the profile, which other users cannot read',
    (dir) => {
      expect(() => requireInProfile(dir, HOME)).not.toThrow();
    },
  );

  test.each(['D:\\data', 'C:\\Users\\me2\\data', 'C:\\Users', '\\\\server\\share\\data', 'C:\\Users\\me\\..\\you'])(
    '%s is refused, with the folder to use',
    (dir) => {
      expect(() => requireInProfile(dir, HOME)).toThrow(expect.objectContaining({ code: 'data-unwritable' }));
      expect(() => requireInProfile(dir, HOME)).toThrow(/inside C:\\Users\\me, .*--data/);
    },
  );
});
