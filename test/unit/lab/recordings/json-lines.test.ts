import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Loss } from '../../../../src/lab/recordings/importer.js';
import { readJsonLines } from '../../../../src/lab/recordings/json/json-lines.js';
import { anyText } from '../../../support/any-text.js';
import { bytesSource } from '../../../support/recordings.js';

interface Read {
  readonly records: readonly unknown[];
  readonly places: readonly string[];
  readonly losses: readonly Loss[];
}

async function read(
  content: Buffer | string,
  { chunk = 7, maxLineBytes = 1000, isRecord = ({ type }: Readonly<Record<string, unknown>>) => type === 'user' } = {},
): Promise<Read> {
  const losses: Loss[] = [];
  const records: unknown[] = [];
  const places: string[] = [];
  for await (const { record, place } of readJsonLines(bytesSource(content, chunk).open(), (loss) => losses.push(loss), {
    maxLineBytes,
    isRecord,
  })) {
    records.push(record);
    places.push(place);
  }
  return { records, places, losses };
}

const reasons = ({ losses }: Read): readonly string[] => losses.map(({ reason, place }) => `${reason} ${place}`);

describe('JSON lines', () => {
  test('yield records in order with line numbers; empty lines and \\r\\n are ignored', async () => {
    const found = await read('{"a":1}\r\n\r\n  \n{"b":2}');
    expect(found).toEqual({ records: [{ a: 1 }, { b: 2 }], places: ['line 1', 'line 4'], losses: [] });
  });

  test('have a byte order mark removed and reported', async () => {
    const found = await read('\uFEFF{"a":1}\n');
    expect(found.records).toEqual([{ a: 1 }]);
    expect(reasons(found)).toEqual(['repaired-text line 1']);
  });

  test('separate several objects on one line, in any form', async () => {
    const found = await read('{"a":"}{"}{"b":[1]} {"c":{"d":"\\"}"}}\n');
    expect(found.records).toEqual([{ a: '}{' }, { b: [1] }, { c: { d: '"}' } }]);
    expect(reasons(found)).toEqual(['repaired-text line 1']);
  });

  test('yield a record after a torn one on the same line', async () => {
    const found = await read('{"type":"user","message":{"role":"us{"type":"user","message":{}}\n{"a":1}\n');
    expect(found.records).toEqual([{ type: 'user', message: {} }, { a: 1 }]);
    expect(reasons(found)).toEqual(['malformed-record line 1']);
  });

  test('yield no part of a torn record, nor anything after one at the end of the file', async () => {
    const parts = await read('{"type":"user","message":{"role":"user"}\n{"a":1}\n');
    expect(parts.records).toEqual([{ a: 1 }]);
    expect(reasons(parts)).toEqual(['malformed-record line 1']);
    const end = await read('{"a":1}\n{"type":"progress","data":{"type":"user"}');
    expect(end.records).toEqual([{ a: 1 }]);
    expect(reasons(end)).toEqual(['truncated-file line 2']);
  });

  test('keep objects before rubbish and report the rubbish', async () => {
    const found = await read('{"a":1} and more\n{"b":2}\n');
    expect(found.records).toEqual([{ a: 1 }, { b: 2 }]);
    expect(reasons(found)).toEqual(['repaired-text line 1', 'malformed-record line 1']);
  });

  test('report a torn last line as the truncated end of the file, but not an earlier one', async () => {
    const found = await read('{"a":\n{"b":2}\n{"c":{"d":');
    expect(found.records).toEqual([{ b: 2 }]);
    expect(reasons(found)).toEqual(['malformed-record line 1', 'truncated-file line 3']);
  });

  test('report values that are not objects', async () => {
    const found = await read('[{"a":1}]\n42\n"text"\nnull\n');
    expect(found.records).toEqual([]);
    expect(reasons(found)).toEqual([
      'malformed-record line 1',
      'malformed-record line 2',
      'malformed-record line 3',
      'malformed-record line 4',
    ]);
  });

  test('report an overlong line with its length and read the next', async () => {
    const found = await read(`{"a":"${'x'.repeat(2000)}"}\n{"b":2}\n{"c":"${'y'.repeat(1500)}"}`);
    expect(found.records).toEqual([{ b: 2 }]);
    expect(found.losses.map(({ place, detail }) => [place, /(\d+) bytes/.exec(detail)?.[1]])).toEqual([
      ['line 1', '2008'],
      ['line 3', '1508'],
    ]);
  });

  test('report zero bytes between records as binary; replace and report invalid UTF-8', async () => {
    const found = await read(
      Buffer.concat([Buffer.from('{"a":1}\n'), Buffer.alloc(20), Buffer.from('\n{"b":"\xe9"}\n', 'latin1')]),
    );
    expect(found.records).toEqual([{ a: 1 }, { b: '\uFFFD' }]);
    expect(reasons(found)).toEqual(['binary line 2', 'repaired-text line 3']);
  });

  test('do not depend on the chunking of the bytes', async () => {
    const record = fc.record({ text: anyText(), list: fc.array(fc.oneof(fc.integer(), fc.constant('{"}'))) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { maxLength: 8 }),
        fc.integer({ min: 1, max: 40 }),
        fc.boolean(),
        async (records, chunk, apart) => {
          const content = records.map((one) => JSON.stringify(one)).join(apart ? '\n' : '');
          const found = await read(content, { chunk, maxLineBytes: 1_000_000 });
          expect(found.records).toEqual(records.map((one) => JSON.parse(JSON.stringify(one))));
        },
      ),
    );
  });
});
