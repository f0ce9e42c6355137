import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { inShell, programFiles, spawnedAs } from '../../../src/process/program-files.js';
import { traitsOf, windowsProgram } from '../../../src/process/system.js';

describe('the files that a program may be', () => {
  test('lie on the PATH of Windows with each ending, never in the working folder or a relative one', () => {
    const env = { Path: 'C:\\npm;.;bin;D:\\tools', PATHEXT: '.EXE;.CMD' };
    expect(programFiles('claude', { env, platform: 'win32' })).toEqual([
      'C:\\npm\\claude.EXE',
      'C:\\npm\\claude.CMD',
      'D:\\tools\\claude.EXE',
      'D:\\tools\\claude.CMD',
    ]);
  });

  test('lie in the absolute folders of the PATH elsewhere', () => {
    expect(programFiles('claude', { env: { PATH: '/usr/bin:.::bin:/opt/bin' }, platform: 'linux' })).toEqual([
      '/usr/bin/claude',
      '/opt/bin/claude',
    ]);
  });
});

describe('the start of a program', () => {
  test('names a program and its arguments as they are', () => {
    expect(spawnedAs('/usr/bin/claude', ['%PATH%', '"'])).toMatchObject({
      command: '/usr/bin/claude',
      args: ['%PATH%', '"'],
    });
  });

  test('quotes a command file and all its arguments for the shell of Windows', () => {
    expect(spawnedAs('C:\\Program Files\\a&b\\npx.cmd', ['--dir=C:\\my files\\', 'x & calc', '^|<>'])).toEqual({
      command: 'C:\\Windows\\System32\\cmd.exe',
      args: [
        '/d',
        '/v:off',
        '/s',
        '/c',
        '""C:\\Program Files\\a&b\\npx.cmd" "--dir=C:\\my files\\\\" "x & calc" "^|<>""',
      ],
      options: { windowsHide: true, windowsVerbatimArguments: true },
    });
  });

  test.each(['%PATH%', 'a" & calc & "', 'a\r\ncalc', 'a\0'])('refuses a command file with %j', (arg) => {
    expect(spawnedAs('C:\\npm\\npx.CMD', [arg])).toBeUndefined();
    expect(spawnedAs(`C:\\${arg}\\npx.cmd`, [])).toBeUndefined();
  });

  test('runs a line in the shell of each system', async () => {
    const { command, args, options } = inShell('printf %s "$((6 * 7))"', { hasSignals: true });
    expect(await text(spawn(command, args, options).stdout)).toBe('42');
    expect(inShell('echo "a b"', traitsOf('win32')).args).toEqual(['/d', '/s', '/c', '"echo "a b""']);
  });
});

test('a program of Windows has an absolute path', () => {
  expect(windowsProgram('taskkill.exe')).toBe('C:\\Windows\\System32\\taskkill.exe');
  expect(traitsOf('win32').opener[0]).toBe(windowsProgram('cmd.exe'));
  expect([traitsOf('darwin').opener[0], traitsOf('linux').opener[0]]).toEqual(['open', 'xdg-open']);
});
