import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { StoredDocument, StoredValue } from '../../../src/xtdb/documents.js';
import { anyText } from '../../support/any-text.js';
import { openTestClient, uniquePrefix } from '../../support/xtdb.js';

const client = openTestClient();
afterAll(() => client.close());
const p = uniquePrefix();
let count = 0;

/** Puts a document, reads it back in each way, and checks that it still matches the stored one. */
const survives = async (fields: Readonly<Record<string, StoredValue>>): Promise<void> => {
  count += 1;
  const doc: StoredDocument = { ...fields, 'xt/id': `${p}${count}` };
  expect((await client.execute([{ op: 'put', doc }])).outcome).toBe('committed');
  const db = await client.db();
  const read = await db.entity(doc['xt/id']);
  if (read === undefined) throw new Error('the document was not found');
  expect(read).toEqual(doc);
  expect((await db.entities([doc['xt/id']])).get(doc['xt/id'])).toEqual(doc);
  expect((await db.history(doc['xt/id'], { withDocs: true }))[0]?.document).toEqual(doc);
  const matched = await client.execute([
    { op: 'match', id: doc['xt/id'], doc: read },
    { op: 'put', doc: { 'xt/id': doc['xt/id'], status: 'matched' } },
  ]);
  expect(matched.outcome).toBe('committed');
};

const HARD_STRINGS = [
  '',
  '\u0000',
  '\u0000\u0001\u0008\u000b\u000c\u001b\u007f\u0085',
  '"\\"\\\\',
  'a\r\nb\tc',
  '\u2028\u2029\ufeff\ufffe\uffff',
  '😀👨‍👩‍👧 é e\u0301',
  '~:a',
  '^ ',
  '^0',
  '~#list',
  '`~^',
  ':x',
  'x} [:xtdb.api/evict "y"] {:z',
  '#inst "2024-01-01"',
  '2024-01-01T00:00:00Z',
];

describe('documents read as they were put, and still match', () => {
  test.each(HARD_STRINGS)('the text %j as a value, in a vector and as a key', async (text) => {
    await survives({ text, content: text, args: { [text]: text, list: [text, [text]] }, turns: [text] });
  });

  test('a text of one million characters', async () => {
    await survives({ content: 'const x = "é😀\\n";\n'.repeat(55_000), char_count: 1_000_000 });
  });

  test.each([
    ['null', { content: null, source: null, chat_ref: null }],
    ['empty vectors and maps', { turns: [], args: {}, file_refs: [], body: [[], {}] }],
    ['longs at their ends', { char_count: Number.MAX_SAFE_INTEGER, size: Number.MIN_SAFE_INTEGER, seq: 0 }],
    [
      'numbers inside maps',
      { args: { i: 1, d: 1.5, e: 1e20, tiny: 5e-324, big: -1.7976931348623157e308, wide: 2 ** 53 } },
    ],
    ['booleans', { gone: false, args: { yes: true } }],
    ['maps that look like wrappers', { args: { v: [1] }, body: { m: { v: 1 } }, source: { v: null } }],
    ['a vector of 2,000 ids', { file_refs: Array.from({ length: 2_000 }, (_, n) => `file-${n}`) }],
    [
      'keys that objects inherit',
      { args: JSON.parse('{"__proto__": 1, "constructor": {"toString": 2}}') as StoredValue },
    ],
  ] as const)('with %s', async (_name, fields) => {
    await survives(fields as Readonly<Record<string, StoredValue>>);
  });

  test('any JSON as arguments, any text as content', async () => {
    const text = anyText();
    const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as StoredValue);
    const document = fc.record({
      args: json,
      body: json,
      content: fc.option(text, { nil: null }),
      text,
      char_count: fc.maxSafeInteger().map((n) => n + 0),
    });
    await fc.assert(fc.asyncProperty(document, survives), { numRuns: 60 });
  });
});
