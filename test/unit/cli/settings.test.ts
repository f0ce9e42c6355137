import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { readSettings } from '../../../src/cli/settings.js';

describe('where settings come from', () => {
  test('the defaults follow the XDG folders of the user', () => {
    expect(readSettings({}, {})).toEqual({
      dataDir: join(homedir(), '.local', 'share', 'palimpsest'),
      profile: 'rocksdb',
      cacheDir: join(homedir(), '.cache', 'palimpsest'),
      runtimeDir: undefined,
      javaHome: undefined,
      xtdbUrl: undefined,
    });
    expect(
      readSettings({ XDG_DATA_HOME: '/d', XDG_CACHE_HOME: '/c', XDG_RUNTIME_DIR: '/r', JAVA_HOME: '/j', XTDB_URL: 'http://h:3000' }, {}),
    ).toEqual({
      dataDir: '/d/palimpsest',
      profile: 'rocksdb',
      cacheDir: '/c/palimpsest',
      runtimeDir: '/r',
      javaHome: '/j',
      xtdbUrl: 'http://h:3000',
    });
  });

  test('a flag wins over a variable, a variable over a default, and an empty variable is none', () => {
    expect(readSettings({ PALIMPSEST_DATA: '/v', XDG_DATA_HOME: '/d' }, {}).dataDir).toBe('/v');
    expect(readSettings({ PALIMPSEST_DATA: '/v' }, { data: '/f' }).dataDir).toBe('/f');
    expect(readSettings({ PALIMPSEST_DATA: '', XDG_DATA_HOME: '/d' }, {}).dataDir).toBe('/d/palimpsest');
    expect(readSettings({ PALIMPSEST_PROFILE: 'memory' }, {}).profile).toBe('memory');
  });

  test('an unknown profile is refused with the ones there are', () => {
    expect(() => readSettings({}, { profile: 'postgres' })).toThrow(/"postgres".*memory, rocksdb/);
  });
});
