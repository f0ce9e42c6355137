import { describe, expect, test } from '@jest/globals';
import * as z from 'zod';
import { parseArguments } from '../../../src/tools/arguments.js';

const READ = {
  path: z.string().optional(),
  id: z.string().optional(),
  offset: z.int().min(1).optional(),
  limit: z.int().min(1).optional(),
};
const GREP = {
  pattern: z.string().describe('Regular expression'),
  path: z.string().optional(),
  glob: z.string().optional(),
  ignoreCase: z.boolean().optional(),
  literal: z.boolean().optional(),
  context: z.int().optional(),
  limit: z.int().optional(),
};
const EDIT = { path: z.string(), edits: z.array(z.object({ oldText: z.string(), newText: z.string() })) };
const IDS = { ids: z.array(z.string()).min(1) };

describe('arguments of a call', () => {
  test.each([
    ['read', READ, { file_path: 'a', offset: 3 }, { path: 'a', offset: 3 }],
    ['read', READ, { filePath: 'a', start_line: '3', end_line: '5' }, { path: 'a', offset: 3, limit: 3 }],
    ['read', READ, { path: 'a', end_line: 7 }, { path: 'a', limit: 7 }],
    [
      'grep',
      GREP,
      { pattern: 'x', dir_path: 'src', include: '*.ts', case_sensitive: false },
      { pattern: 'x', path: 'src', glob: '*.ts', ignoreCase: true },
    ],
    [
      'grep',
      GREP,
      { pattern: 'x', '-i': 'true', '-C': '2', fixed_strings: true, head_limit: 9 },
      { pattern: 'x', ignoreCase: true, context: 2, literal: true, limit: 9 },
    ],
    [
      'edit',
      EDIT,
      { file_path: 'a', old_string: 'x', new_string: 'y' },
      { path: 'a', edits: [{ oldText: 'x', newText: 'y' }] },
    ],
    [
      'edit',
      EDIT,
      { path: 'a', edits: [{ old_string: 'x', new_string: 'y' }] },
      { path: 'a', edits: [{ oldText: 'x', newText: 'y' }] },
    ],
    [
      'edit',
      EDIT,
      { path: 'a', edits: '[{"oldText":"x","newText":"y"}]' },
      { path: 'a', edits: [{ oldText: 'x', newText: 'y' }] },
    ],
    ['activate', IDS, { id: 'abc' }, { ids: ['abc'] }],
    ['activate', IDS, { ids: 'abc' }, { ids: ['abc'] }],
    ['pin', IDS, { ids: '["a","b"]' }, { ids: ['a', 'b'] }],
    ['pin', IDS, { path: 'src/a.ts' }, { ids: ['src/a.ts'] }],
  ] as const)('of %s may use the names of other agents: %#', (tool, shape, given, expected) => {
    expect(parseArguments(tool, shape, given)).toEqual({ values: expected, remarks: [] });
  });

  test('are absent if null, and clients’ additions are ignored silently', () => {
    expect(
      parseArguments('read', READ, {
        path: 'a',
        limit: null,
        wait_for_previous: true,
        session: 's',
        description: 'why',
      }),
    ).toEqual({
      values: { path: 'a' },
      remarks: [],
    });
    expect(parseArguments('read', READ, undefined)).toEqual({ values: {}, remarks: [] });
  });

  test('never fail a call if they are unknown; a typo is named', () => {
    const { values, remarks } = parseArguments('grep', GREP, { pattern: 'x', contex: 2, zzz: 1 });
    expect(values).toEqual({ pattern: 'x' });
    expect(remarks).toEqual([
      'unknown argument "contex" was ignored; did you mean "context"?',
      'unknown argument "zzz" was ignored',
    ]);
  });

  test('are each named with the correct form if they are wrong', () => {
    expect(() => parseArguments('grep', GREP, { path: 5, limit: 'many' })).toThrow(
      /"pattern": expected string, received undefined \(Regular expression\).*"limit": expected number/,
    );
    expect(() => parseArguments('read', READ, { path: 'a', offset: 0 })).toThrow(/"offset": expected number to be >=1/);
    expect(() => parseArguments('edit', EDIT, { path: 'a', edits: [{ oldText: 'x' }] })).toThrow(
      /"edits\[0\]\.newText": expected string/,
    );
    expect(() => parseArguments('read', READ, ['a'])).toThrow('the arguments of read are not an object');
  });

  test('are merely unknown if they shadow members of every object', () => {
    const given = JSON.parse('{"path":"a","__proto__":{"limit":1},"constructor":1,"toString":2}') as unknown;
    const { values, remarks } = parseArguments('read', READ, given);
    expect(values).toEqual({ path: 'a' });
    expect(remarks).toHaveLength(3);
  });
});
