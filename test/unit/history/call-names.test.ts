import { describe, expect, test } from '@jest/globals';
import {
  callName,
  kindOfCall,
  linesAsked,
  namedCall,
  storedCallName,
} from '../../../src/history/rebuild/call-names.js';

describe('a call', () => {
  test.each([
    ['read', { path: '/home/me/shop/src/cart.ts', offset: 1, limit: 200 }, 'read src/cart.ts 1-200'],
    ['Read', { file_path: 'a.ts' }, 'read a.ts'],
    ['mcp__fs__read_file', { path: '/a/b/c.ts', start_line: 5 }, 'read_file b/c.ts 5-'],
    ['str_replace_editor', { command: 'view', path: '/w/a.py', view_range: [3, 9] }, 'view /w/a.py 3-9'],
    ['Bash', { command: 'cd /home/me/shop && npm test' }, 'bash npm test'],
    ['shell', { command: ['bash', '-lc', '\n# all\nls -l\nrm x'] }, 'shell ls -l'],
    [
      'apply_patch',
      { input: '*** Begin Patch\n*** Update File: src/a.ts\n@@\n-x\n+y\n*** End Patch' },
      'apply_patch src/a.ts',
    ],
    ['Grep', { pattern: 'Math.ceil', path: '/home/me/shop/src' }, 'grep Math.ceil in shop/src'],
    ['Task', { description: 'Find the bug', prompt: 'long' }, 'task Find the bug'],
    ['activate', { ids: ['src/cart.ts'] }, 'activate src/cart.ts'],
    ['think', {}, 'think'],
    ['read', { paths: ['a/1.ts', 'a/2.ts', 'a/3.ts'] }, 'read a/1.ts, a/2.ts and 1 more'],
  ])('of %s with %j is named %j', (tool, args, name) => {
    expect(callName({ tool, args })).toBe(name);
  });

  test('that lists by a command is named by its command, and has the kind of a shell', () => {
    const args = { command: 'cd /home/me && ls shop/.env/', description: 'List the folder' };
    expect(storedCallName({ tool: 'grep', args })).toBe('bash ls shop/.env/');
    expect(kindOfCall(namedCall({ tool: 'grep', args }))).toBe('shell');
    expect(storedCallName({ tool: 'grep', args: { pattern: 'x', path: 'src' } })).toBe('grep x in src');
    expect(storedCallName({ tool: 'grep', args: { command: 'x', pattern: 'y' } })).toBe('grep y');
  });

  test('has a name of one line and limited length', () => {
    const name = callName({ tool: 'bash', args: { command: `echo ${'\u{1f600}'.repeat(500)}\nrm x` } });
    expect(name.length).toBeLessThan(90);
    expect(name).toMatch(/^bash echo .*…$/u);
    expect(name.isWellFormed()).toBe(true);
  });

  test('asks for a range of lines, or for the whole file', () => {
    expect(linesAsked({ args: { offset: 11, limit: 10 } })).toEqual({ from: 11, to: 20 });
    expect(linesAsked({ args: { path: 'a' } })).toBeUndefined();
  });
});
