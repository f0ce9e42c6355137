import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { dataFolder } from '../../../src/host/environment.js';

describe('the data folder', () => {
  const windows = { home: '/home/me', platform: 'win32' } as const;
  const linux = { home: '/home/me', platform: 'linux' } as const;

  test('lies in the local application data on Windows, and in the XDG data folder elsewhere', () => {
    expect(dataFolder({ LOCALAPPDATA: '/local' }, windows)).toBe(join('/local', 'palimpsest'));
    expect(dataFolder({}, windows)).toBe(join('/home/me', 'AppData', 'Local', 'palimpsest'));
    expect(dataFolder({ LOCALAPPDATA: '/local' }, linux)).toBe('/home/me/.local/share/palimpsest');
  });

  test('is the one that a variable names, on every system', () => {
    for (const at of [windows, linux]) {
      expect(dataFolder({ PALIMPSEST_DATA: '/data', XDG_DATA_HOME: '/xdg', LOCALAPPDATA: '/local' }, at)).toBe('/data');
      expect(dataFolder({ XDG_DATA_HOME: '/xdg', LOCALAPPDATA: '/local' }, at)).toBe(join('/xdg', 'palimpsest'));
    }
  });
});
