import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { hashText } from '../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { indexedFile } from '../../../src/objects/versions.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import type { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { effort } from '../../support/effort.js';
import { historyOf } from '../../support/object-history.js';
import { openTestClient } from '../../support/xtdb.js';

interface Written {
  readonly validTime: number;
  readonly txId: number;
  /** Place in the order of all writes. */
  readonly order: number;
  readonly content: string;
}

const TRANSACTIONS = effort(10, 40);
const EACH = 25;
const COUNT = TRANSACTIONS * EACH;
const FIRST = Date.UTC(2026, 0, 1);
/** Fewer moments than versions, so that many coincide. */
const MOMENTS = COUNT * 0.6;

/**
 * Returns the answer according to a plain list of all writes: the latest version that was known and
 * valid by then. Of versions at equal times it is the last one written.
 */
function expected(all: readonly Written[], validTime: number, txId: number): string | undefined {
  const known = all.filter((version) => version.txId <= txId && version.validTime <= validTime);
  return known.toSorted((a, b) => a.validTime - b.validTime || a.order - b.order).at(-1)?.content;
}

describe('an object with hundreds of versions [decision F7]', () => {
  const source = filesystemSource(filesystemId(`fs-${randomUUID()}`), canonicalPath('/versions.txt'));
  const all: Written[] = [];
  let xtdb: XtdbClient;
  let store: ObjectStore;
  let id: string;

  const read = async (validTime: number, txId: number): Promise<string | undefined> => {
    const found = await (await store.asOf({ validTime: new Date(validTime), txId })).get(id);
    return found?.version.content ?? undefined;
  };

  beforeAll(async () => {
    xtdb = openTestClient();
    store = new ObjectStore(xtdb);
    // Deterministic, unordered numbers: late drains and clocks that step back write earlier moments
    // in later transactions.
    let seed = 20_261_121;
    const random = (): number => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 32;
    };
    for (let tx = 0; tx < TRANSACTIONS; tx++) {
      const batch = Array.from({ length: EACH }, (_, i) => ({
        validTime: FIRST + Math.floor(random() * MOMENTS),
        content: `version ${tx * EACH + i}`,
      }));
      const { txId } = await store.putMany(
        batch.map(({ validTime, content }) => {
          const version = indexedFile(source, content, hashText(content));
          id = version['xt/id'];
          return { version, validTime: new Date(validTime) };
        }),
      );
      for (const [i, { validTime, content }] of batch.entries())
        all.push({ validTime, content, order: tx * EACH + i, txId: txId as number });
    }
  });

  afterAll(async () => {
    await store.close();
    await xtdb.close();
  });

  test('reads correctly at every boundary, a millisecond before and after it', async () => {
    const last = all.at(-1)?.txId as number;
    const moments = [...new Set(all.flatMap(({ validTime }) => [validTime - 1, validTime, validTime + 1]))].sort(
      (a, b) => a - b,
    );
    expect(all).toHaveLength(COUNT);
    expect(new Set(all.map(({ validTime }) => validTime)).size).toBeLessThan(COUNT);
    for (let first = 0; first < moments.length; first += 50) {
      const page = moments.slice(first, first + 50);
      const found = await Promise.all(page.map((moment) => read(moment, last)));
      expect(found).toEqual(page.map((moment) => expected(all, moment, last)));
    }
  });

  test('is absent before its first version and unchanged after its last one', async () => {
    const [first, last] = [
      Math.min(...all.map(({ validTime }) => validTime)),
      Math.max(...all.map(({ validTime }) => validTime)),
    ];
    const newest = all.at(-1)?.txId as number;
    expect(await read(first - 1, newest)).toBeUndefined();
    expect(await read(0, newest)).toBeUndefined();
    expect(await read(last, (all[0]?.txId as number) - 1)).toBeUndefined();
    expect(await read(last + 1, newest)).toBe(expected(all, last, newest));
    expect(await read(Date.UTC(9_999, 0, 1), newest)).toBe(expected(all, last, newest));
  });

  test('reads correctly at any pair of valid and transaction time', async () => {
    const txIds = [...new Set(all.map(({ txId }) => txId))];
    const anyTx = fc.constantFrom(...txIds);
    const anyMoment = fc.oneof(
      fc.constantFrom(...all.map(({ validTime }) => validTime)),
      fc.integer({ min: FIRST - 5, max: FIRST + MOMENTS + 5 }),
    );
    await fc.assert(
      fc.asyncProperty(anyMoment, anyTx, async (validTime, txId) => {
        expect(await read(validTime, txId)).toBe(expected(all, validTime, txId));
      }),
      { numRuns: effort(75, 300) },
    );
  });

  test('has a history of every version that was ever current, corrections included', async () => {
    const snapshot = await store.asOf({ validTime: new Date(FIRST + MOMENTS), txId: all.at(-1)?.txId as number });
    const history = await historyOf(snapshot, id);
    const listed = history.map(({ version, validTime, txId }) => [version?.content, validTime.getTime(), txId]);
    // Of several versions of one moment in one transaction only the last existed.
    const lasting = all.filter(
      (one) =>
        !all.some((other) => other.txId === one.txId && other.validTime === one.validTime && other.order > one.order),
    );
    expect(listed.length).toBe(lasting.length);
    expect(new Set(listed.map((entry) => JSON.stringify(entry)))).toEqual(
      new Set(lasting.map(({ content, validTime, txId }) => JSON.stringify([content, validTime, txId]))),
    );
  });
});
