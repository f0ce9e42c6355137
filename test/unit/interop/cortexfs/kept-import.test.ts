import { describe, expect, test } from '@jest/globals';
import { type KeptImport, keptImports, keptRecords } from '../../../../src/interop/cortexfs/kept-import.js';
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

describe('what an import kept', () => {
  test('is read as it was written', () => {
    const kept = { ...NOTHING, files: { 'context/pinned/a.md': 'a', cwd: null } };
    expect(readBack(kept)).toEqual([kept]);
  });

  test.each(['../a', 'context/../../a', '/etc/a', 'a//b', './a', 'a/.', '', '..\\a', 'a\0'])(
    'counts for nothing with the path %j',
    (path) => {
      expect(readBack({ ...NOTHING, files: { [path]: 'text' } })).toEqual([]);
    },
  );

  test.each([
    ['context/facts.jsonl', 'no JSON\n'],
    ['meta.json', '['],
  ])('counts for nothing where %s breaks the document', (path, text) => {
    expect(readBack({ ...NOTHING, files: { [path]: text } })).toEqual([]);
  });
});
