import { describe, expect, test } from '@jest/globals';
import {
  asksForPart,
  firstLineAsked,
  namedPaths,
  pathArgument,
  severalPaths,
} from '../../../src/foreign-tools/tool-arguments.js';

describe('files that a call names', () => {
  test('are found under the parameter names that tools use', () => {
    expect(namedPaths({ file_path: '/a' })).toEqual(['/a']);
    expect(namedPaths({ filePath: 'b', oldString: 'x' })).toEqual(['b']);
    expect(namedPaths({ paths: ['a', 'b', 'a'] })).toEqual(['a', 'b']);
    expect(namedPaths({ files: [{ path: 'a' }, { path: 'b' }] })).toEqual(['a', 'b']);
    expect(namedPaths({ uri: 'file:///x%20y' })).toEqual(['/x y']);
    expect(namedPaths({ path: 'a\0b', other: '/c' })).toEqual([]);
  });

  test('yield the target of a tool from the first matching parameter', () => {
    expect(pathArgument({ file_name: 'a', path: 'b' })).toBe('b');
    expect(pathArgument({ path: '', file_path: 'a' })).toBe('a');
    expect(pathArgument({ dir: 'src', file_name: 'a.ts' }, 'folder')).toBe('src');
    expect(pathArgument({ path: 3 })).toBeUndefined();
  });

  test('may be several, as texts or with a range each', () => {
    expect(severalPaths({ files: [{ path: 'a', start_line: 1 }, 'b', 3, null] })).toEqual(['a', 'b']);
  });
});

describe('the requested part of a read', () => {
  test.each([
    [{}, false, 1],
    [{ offset: 1 }, false, 1],
    [{ offset: 7 }, true, 7],
    [{ start_line: 3, end_line: 5 }, true, 3],
    [{ view_range: [4, 9] }, true, 4],
    [{ limit: 10 }, true, 1],
    [{ head: false, limit: null }, false, 1],
    [{ offset: 'x' }, false, 1],
  ])('%j', (args, part, first) => {
    expect(asksForPart(args)).toBe(part);
    expect(firstLineAsked(args)).toBe(first);
  });
});
