import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { fileStub } from '../../../src/objects/versions.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { testAddress } from '../../support/context.js';

const filesystem = filesystemId(`fs-${randomUUID()}`);
const stub = (path: string) => fileStub(filesystemSource(filesystem, canonicalPath(path)));

describe('a write whose guards keep changing', () => {
  let xtdb: XtdbClient;
  let store: ObjectStore;
  beforeAll(() => {
    xtdb = new XtdbClient(testAddress());
    store = new ObjectStore(xtdb);
  });
  afterAll(async () => {
    await store.close();
    await xtdb.close();
  });

  test('continues while less remains to be written', async () => {
    const all = Array.from({ length: 13 }, (_, i) => stub(`/less/${i}`));
    const written = await store.writes.write('lists', async (attempt) => {
      const there = new Set<string>(await (await store.latest()).existing(all.map((one) => one['xt/id'])));
      const missing = all.filter((one) => !there.has(one['xt/id']));
      const [first] = missing;
      // Another writer is faster, repeatedly.
      if (first !== undefined && missing.length > 1) await store.putMany([{ version: first, expect: null }]);
      return { ops: missing.flatMap((version) => store.putOps({ version, expect: null })), result: attempt };
    });
    expect(written).toEqual({ result: all.length, txId: expect.any(Number) });
  });

  test('gives up if nothing changes', async () => {
    const version = stub('/stuck');
    await store.putMany([{ version, expect: null }]);
    let attempts = 0;
    const written = store.writes.write('stuck', async () => {
      attempts += 1;
      return { ops: store.putOps({ version, expect: null }), result: undefined };
    });
    await expect(written).rejects.toMatchObject({ name: 'StoreError', code: 'conflict' });
    expect(attempts).toBeGreaterThan(1);
  });
});
