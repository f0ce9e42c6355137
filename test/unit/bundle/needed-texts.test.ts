import { expect, test } from '@jest/globals';
import { neededTexts } from '../../../src/bundle/needed-texts.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
import { toRecordPart } from '../../../src/store/context-records.js';

test('includes the texts that a record names in a bundle', () => {
  const record = {
    kind: 'event',
    owner: { session: sessionId('s') },
    turn: 1,
    seq: 1,
    at: 1,
    basis: null,
    body: { type: 't', data: {} },
  } as const;
  expect(neededTexts(toRecordPart(record))).toEqual([]);
  const hash = hashText('a long block');
  expect(neededTexts(toRecordPart({ ...record, texts: [hash] }))).toEqual([
    { hash, isRequired: true, isMessage: false },
  ]);
});
