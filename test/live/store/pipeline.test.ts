import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { fileStub } from '../../../src/objects/file.js';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { createXtdbClient, type XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { testAddress } from '../../support/context.js';

const filesystem = filesystemId(`fs-${randomUUID()}`);
const stub = (path: string) => fileStub(filesystemSource(filesystem, canonicalPath(path)));

describe('the pipeline of a sole writer', () => {
  let xtdb: XtdbClient;
  let store: ObjectStore;
  beforeAll(() => {
    xtdb = createXtdbClient(testAddress());
    store = new ObjectStore(xtdb);
  });
  afterAll(async () => {
    await store.close();
    await xtdb.close();
  });

  test('submits in the order it was asked in, over all lanes, each planned after the one before is in the log', async () => {
    const events: string[] = [];
    const writes = Array.from({ length: 40 }, (_, i) =>
      store.writes.pipeline(
        `lane-${i % 3}`,
        async () => {
          events.push(`plan ${i}`);
          return { ops: store.putOps({ version: stub(`/order/${i}`), expect: null }), result: i };
        },
        { onSubmitted: (result) => events.push(`sent ${result}`) },
      ),
    );
    const written = await Promise.all(writes);
    expect(events).toEqual(Array.from({ length: 40 }, (_, i) => [`plan ${i}`, `sent ${i}`]).flat());
    const ids = written.map(({ txId }) => Number(txId));
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(new Set(ids).size).toBe(40);
  });

  test('is flushed when every outcome is known, lane by lane', async () => {
    let known = false;
    const write = store.writes.pipeline('flushed', async () => ({ ops: store.putOps({ version: stub('/flushed') }), result: undefined }), {
      onSubmitted: () => undefined,
    });
    write.then(
      () => {
        known = true;
      },
      () => undefined,
    );
    await store.writes.flush('flushed');
    expect(known).toBe(true);
  });

  test('does not try again what a guard kept out, and goes on behind it', async () => {
    const taken = stub('/taken');
    await store.putMany([{ version: taken }]);
    let plans = 0;
    const refused = store.writes.pipeline(
      'a',
      async () => {
        plans += 1;
        return { ops: store.putOps({ version: taken, expect: null }), result: 'refused' };
      },
      { onSubmitted: () => undefined },
    );
    const behind = store.writes.pipeline('a', async () => ({ ops: store.putOps({ version: stub('/behind') }), result: 'behind' }), {
      onSubmitted: () => undefined,
    });
    await expect(refused).rejects.toMatchObject({ name: 'StoreError', code: 'conflict' });
    expect(await behind).toMatchObject({ result: 'behind' });
    expect(plans).toBe(2);
  });

  test('takes what is written already for written', async () => {
    const there = stub('/there');
    await store.putMany([{ version: there }]);
    const plan = async (attempt: number) => ({
      ops: attempt === 1 ? store.putOps({ version: there, expect: null }) : [],
      result: attempt,
    });
    expect(await store.writes.pipeline('b', plan, { onSubmitted: () => undefined })).toEqual({ result: 2, txId: undefined });
  });
});
