import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { RecordKind } from '../../../src/objects/context-record.js';
import { hashText } from '../../../src/objects/hashes.js';
import { type Sha256, sessionId } from '../../../src/objects/ids.js';
import { recordRanges } from '../../../src/store/context-records.js';
import { headsWithTimes, partsAtSteps, recordParts } from '../../../src/store/queries.js';
import { stepId } from '../../../src/store/step-part.js';
import { chunkPart, TextCache, TextReader } from '../../../src/store/texts.js';
import type { StoredDocument } from '../../../src/xtdb/documents.js';
import { openTestClient, uniquePrefix } from '../../support/xtdb.js';

const p = uniquePrefix();
const session = sessionId(p.slice(0, -1));
const at = new Date(1_700_000_000_000);
const document = (name: string): StoredDocument => ({ 'xt/id': `${p}${name}`, type: 'file' });
const step = (seq: number): StoredDocument => ({
  'xt/id': stepId(session, seq),
  type: 'step',
  session_ref: `session:${session}`,
  seq,
  body: { at: 1 },
});

describe('a caching database', () => {
  const writer = openTestClient();
  const reader = openTestClient();
  beforeAll(async () => {
    const docs = [document('a'), document('b'), step(1), step(2)];
    await writer.execute(docs.map((doc) => ({ op: 'put', doc, validTime: at }) as const));
  });
  afterAll(() => Promise.all([writer.close(), reader.close()]));

  test('answers repeated reads without a request, even of absent documents, and requests the rest', async () => {
    const ids = [`${p}a`, `${p}b`, `${p}missing`];
    const db = (await writer.db()).remembering();
    expect(await db.entities(ids.slice(0, 1))).toEqual(new Map([[ids[0], document('a')]]));
    // The start of its validity is unknown.
    expect(await headsWithTimes(db, ids)).toEqual(
      ['a', 'b'].map((name) => ({ document: document(name), validTime: at })),
    );
    expect(
      (await partsAtSteps(db, { kind: 'steps', session, first: 1, last: 2 })).map(({ seq }) => seq).sort(),
    ).toEqual([1, 2]);
    await writer.execute([{ op: 'put', doc: document('missing') }]);
    await writer.close();
    expect(await headsWithTimes(db, [...ids].reverse())).toHaveLength(2);
    expect([...(await db.entities([...ids, stepId(session, 2)])).keys()].sort()).toEqual(
      [`${p}a`, `${p}b`, stepId(session, 2)].sort(),
    );
    expect(await db.entity(`${p}b`)).toEqual(document('b'));
    expect(await db.entity(`${p}missing`)).toBeUndefined();
    await expect(db.entity(`${p}other`)).rejects.toThrow();
  });

  test('requests a text only once, by its name', async () => {
    const other = openTestClient();
    const texts = ['one text', 'another'].map((text) => chunkPart(`${p}${text}`));
    await other.execute(texts.map((doc) => ({ op: 'put', doc }) as const));
    const [read, unread] = texts.map(({ text }) => hashText(String(text))) as [Sha256, Sha256];
    const cache = new TextCache();
    const reader = new TextReader(await other.db(), cache);
    // A text from another source was not read here.
    cache.set(unread, `${p}another`);
    expect((await reader.many([read, unread])).size).toBe(2);
    await other.close();
    expect(await reader.damaged([read])).toEqual(new Map());
    await expect(reader.damaged([read, unread])).rejects.toThrow();
  });

  test('finds records of several kinds together, and in parts if the answer would be too large', async () => {
    const kinds: readonly RecordKind[] = ['note', 'event', 'review'];
    const record = (kind: RecordKind, seq: number, owner = session): StoredDocument => {
      const [[ref = ''] = []] = recordRanges([kind], { session: owner }, { first: seq, last: seq });
      return {
        'xt/id': `${p}record-${owner}-${kind}-${seq}`,
        type: 'record',
        record_ref: ref,
        text: 'x'.repeat(3_000),
      };
    };
    const mine = kinds.flatMap((kind) => [record(kind, 1), record(kind, 7)]);
    const others = [record('note', 9), record('note', 3, sessionId(`${session}-other`)), record('call', 3)];
    await reader.execute([...mine, ...others].map((doc) => ({ op: 'put', doc }) as const));
    const ranges = recordRanges(kinds, { session }, { first: 1, last: 8 });
    const small = openTestClient({ maxAnswerBytes: 10_000 });
    try {
      for (const client of [reader, small]) {
        const found = await recordParts(await client.db(), ranges);
        expect(new Set(found.map((part) => part['xt/id']))).toEqual(new Set(mine.map((part) => part['xt/id'])));
        expect(found).toHaveLength(mine.length);
      }
      expect(await recordParts(await reader.db(), [])).toEqual([]);
    } finally {
      await small.close();
    }
  });
});
