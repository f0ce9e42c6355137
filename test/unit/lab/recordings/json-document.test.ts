import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Loss } from '../../../../src/lab/recordings/importer.js';
import { type DocumentShape, documentItems } from '../../../../src/lab/recordings/json/json-document.js';
import { MAX_DEPTH } from '../../../../src/lab/recordings/json/json-text.js';
import { bytesSource } from '../../../support/recordings.js';

async function read(
  text: string | Buffer,
  shape: DocumentShape,
  chunk = 65_536,
): Promise<{ items: [string, unknown][]; losses: Loss[] }> {
  const losses: Loss[] = [];
  const items: [string, unknown][] = [];
  for await (const { path, value } of documentItems(bytesSource(text, chunk).open(), shape, (loss) =>
    losses.push(loss),
  )) {
    items.push([path.join('.'), value]);
  }
  return { items, losses };
}

describe('items of a document', () => {
  test('are yielded with their paths only if the shape requests them', async () => {
    const { items, losses } = await read(
      '{"a":{"big":[1,{"x":2}]},"list":[{"id":1,"copy":[9,9],"rest":null},"two",3.5,[true]],"b":false}',
      {
        items: ['list.*', 'b', 'missing.*'],
        skip: ['list.*.copy'],
      },
    );
    expect(items).toEqual([
      ['list.0', { id: 1, rest: null }],
      ['list.1', 'two'],
      ['list.2', 3.5],
      ['list.3', [true]],
      ['b', false],
    ]);
    expect(losses).toEqual([]);
  });

  test('match a number as itself and a star as any position', async () => {
    const { items } = await read('[{"t":[1,2]},{"t":[3]}]', { items: ['0.t.*', '1.t'] });
    expect(items).toEqual([
      ['0.t.0', 1],
      ['0.t.1', 2],
      ['1.t', [3]],
    ]);
  });

  test('are whole for any value, wherever the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.jsonValue(), { maxLength: 6 }),
        fc.integer({ min: 1, max: 17 }),
        async (values, chunk) => {
          const { items, losses } = await read(JSON.stringify({ messages: values }), { items: ['messages.*'] }, chunk);
          expect(losses).toEqual([]);
          expect(items.map(([, value]) => value)).toEqual(JSON.parse(JSON.stringify(values)));
        },
      ),
      { numRuns: 150 },
    );
  });

  test('are yielded up to a cut, which is reported once', async () => {
    const text = JSON.stringify({ messages: [{ a: 'ä' }, { b: 'x'.repeat(50) }, { c: 1 }] });
    const bytes = Buffer.from(text);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const { items, losses } = await read(bytes.subarray(0, cut), { items: ['messages.*'] }, 7);
      expect(losses.filter(({ reason }) => reason === 'truncated-file')).toHaveLength(1);
      expect(items.length).toBe(ends(text).filter((end) => cut >= end).length);
    }
  });

  test('end at a broken place, which is reported', async () => {
    const { items, losses } = await read(
      `{"messages":[${'{"a":1},'.repeat(3000)}{"b":nonsense, and more of it behind}]}`,
      {
        items: ['messages.*'],
      },
    );
    expect(items.length).toBeGreaterThan(1000);
    expect(losses).toEqual([
      expect.objectContaining({ reason: 'malformed-record', place: expect.stringMatching(/^messages/) }),
    ]);
  });

  test('have invalid UTF-8 replaced and a byte order mark removed, both reported', async () => {
    const { items, losses } = await read(
      Buffer.concat([Buffer.from('\uFEFF{"m":["a'), Buffer.from([0xff]), Buffer.from('b","c"]}')]),
      {
        items: ['m.*'],
      },
    );
    expect(items.map(([, value]) => value)).toEqual(['a\uFFFDb', 'c']);
    expect(losses.map(({ reason }) => reason)).toEqual(['repaired-text', 'repaired-text']);
  });

  test('are skipped if they nest endlessly, and the next one is read', async () => {
    const deep = '['.repeat(MAX_DEPTH + 50) + ']'.repeat(MAX_DEPTH + 50);
    const { items, losses } = await read(`{"m":[{"x":${deep}},{"y":1}]}`, { items: ['m.*'] });
    expect(items).toEqual([['m.1', { y: 1 }]]);
    expect(losses).toEqual([expect.objectContaining({ reason: 'malformed-record', place: 'm[0]' })]);
  });

  test('contain nothing that the shape omits, in a document of any length', async () => {
    const row = `${JSON.stringify({ content: 'x'.repeat(10_000), query: 'y'.repeat(10_000) })},`;
    const chunks = async function* (): AsyncIterable<Buffer> {
      yield Buffer.from('{"messages":[');
      for (let n = 0; n < 800; n += 1) yield Buffer.from(row);
      yield Buffer.from('{}]}');
    };
    let count = 0;
    let most = 0;
    for await (const item of documentItems(
      chunks(),
      { items: ['messages.*'], skip: ['messages.*.query'] },
      () => undefined,
    )) {
      count += 1;
      most = Math.max(most, JSON.stringify(item.value).length);
    }
    expect(count).toBe(801);
    expect(most).toBeLessThan(11_000);
  });
});

/** The byte offsets after the items of `text`. */
function ends(text: string): readonly number[] {
  const at = (mark: string): number => Buffer.byteLength(text.slice(0, text.indexOf(mark) + mark.length));
  return [at('"ä"}'), at(`${'x'.repeat(50)}"}`), at('"c":1}')];
}
