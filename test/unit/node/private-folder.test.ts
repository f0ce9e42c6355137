import { describe, expect, test } from '@jest/globals';
import { requireInProfile } from '../../../src/node/private-folder.js';

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
