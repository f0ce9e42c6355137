import { describe, expect, test } from '@jest/globals';
import {
  type KeptImport,
  type KeptLine,
  keptImports,
  keptRecords,
} from '../../../../src/contracts/cortexfs/kept-import.js';
import { shownEvents } from '../../../../src/contracts/cortexfs/kept-lines.js';
import { sessionId } from '../../../../src/objects/ids.js';

const NOTHING: KeptImport = {
  number: 1,
  after: 0,
  upto: 0,
  steps: [],
  messages: [],
  events: [],
  messagesBefore: 0,
  eventsBefore: 0,
  files: {},
  hasOwn: false,
  records: [],
};
const readBack = (kept: KeptImport) => keptImports(keptRecords(sessionId('s'), kept));

describe('a kept import', () => {
  test('is shown whole with any number of lines', () => {
    const events = Array.from({ length: 300_000 }, (_, i): KeptLine => [1, `{"type":"e${i}"}`]);
    expect(shownEvents([], [{ ...NOTHING, upto: 1, steps: [''], events }], 1)).toHaveLength(300_000);
  });

  test('reads back as it was written', () => {
    const kept = { ...NOTHING, files: { 'context/pinned/a.md': 'a', cwd: null } };
    expect(readBack(kept)).toEqual([kept]);
  });

  test.each(['../a', 'context/../../a', '/etc/a', 'a//b', './a', 'a/.', '', '..\\a', 'a\0'])(
    'is ignored with the path %j',
    (path) => {
      expect(readBack({ ...NOTHING, files: { [path]: 'text' } })).toEqual([]);
    },
  );

  test.each([
    ['context/facts.jsonl', 'no JSON\n'],
    ['meta.json', '['],
  ])('is ignored if %s breaks the document', (path, text) => {
    expect(readBack({ ...NOTHING, files: { [path]: text } })).toEqual([]);
  });
});
