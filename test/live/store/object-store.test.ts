import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hashText } from '../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { deletedFile, fileStub, indexedFile } from '../../../src/objects/versions.js';
import { toStored } from '../../../src/store/head.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { chunkId } from '../../../src/store/texts.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { countRequests, testAddress } from '../../support/context.js';
import { historyOf } from '../../support/object-history.js';

const filesystem = filesystemId(`fs-${randomUUID()}`);
const sourceOf = (path: string) => filesystemSource(filesystem, canonicalPath(path));
const fileOf = (path: string, content: string) => indexedFile(sourceOf(path), content, hashText(content));

describe('versions in the database', () => {
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

  test.each([
    ['empty', ''],
    ['short', 'const x = 1;\n'],
    ['at the limit of a head', 'x'.repeat(2_048)],
    ['in one chunk', 'line of text\n'.repeat(10_000)],
    ['in several chunks, with a surrogate pair at a cut', `${'a'.repeat(524_287)}\u{1F600}${'b'.repeat(300_000)}`],
    ['full of controls', '\0\u0001\u001b[31m"\\\r\n\u2028\ufeff ~: ^ `'],
  ])('return exactly with content that is %s', async (name, content) => {
    const file = fileOf(`/content/${name}`, content);
    await store.putMany([{ version: file }]);
    const fresh = new ObjectStore(xtdb);
    const found = await (await fresh.now()).get(file['xt/id']);
    expect(found?.version).toEqual(file);
    await fresh.close();
  });

  test('are written in one transaction, and read with one query of heads and one of texts', async () => {
    const files = Array.from({ length: 200 }, (_, i) => fileOf(`/many/${i}.ts`, `export const n = ${i};`));
    const { requests: writes } = await countRequests(() => store.putMany(files.map((version) => ({ version }))));
    expect(writes['/_xtdb/submit-tx']).toBe(1);
    const snapshot = await store.now();
    const { result, requests } = await countRequests(() => snapshot.getMany(files.map((file) => file['xt/id'])));
    expect(requests).toEqual({ '/_xtdb/query': 1 });
    expect(result.size).toBe(200);
  });

  test('have a history with both times, oldest first, and are found by as-of reads', async () => {
    const times = [Date.UTC(2026, 1, 1), Date.UTC(2026, 1, 2), Date.UTC(2026, 1, 3)].map((ms) => new Date(ms));
    const versions = [fileStub(sourceOf('/history.ts')), fileOf('/history.ts', 'one'), fileOf('/history.ts', 'two')];
    for (const [i, version] of versions.entries()) await store.putMany([{ version, validTime: times[i] as Date }]);
    await store.putMany([
      {
        version: deletedFile(sourceOf('/history.ts')),
        marks: { gone: true },
        validTime: new Date(Date.UTC(2026, 1, 4)),
      },
    ]);
    const id = versions[0]?.['xt/id'] ?? '';
    const history = await historyOf(await store.now(), id);
    expect(history.map(({ version }) => version?.content)).toEqual([null, 'one', 'two', null]);
    expect(history.map(({ marks }) => marks.gone)).toEqual([undefined, undefined, undefined, true]);
    expect(history.slice(0, 3).map(({ validTime }) => validTime)).toEqual(times);
    expect(new Set(history.map(({ txId }) => txId)).size).toBe(4);
    const between = await store.asOf({ validTime: new Date(Date.UTC(2026, 1, 2, 12)) });
    expect((await between.get(id))?.version.content).toBe('one');
    const known = await store.asOf({ txId: history[1]?.txId as number });
    expect((await known.get(id))?.version.content).toBe('one');
    const before = await store.asOf({ validTime: new Date(Date.UTC(2026, 0, 1)) });
    expect(await before.get(id)).toBeUndefined();
  });

  test('are written by compare and set only over the expected head', async () => {
    const first = fileOf('/cas.ts', 'first');
    const second = fileOf('/cas.ts', 'second');
    expect((await store.putMany([{ version: first, expect: null }])).result).toBe(true);
    expect((await store.putMany([{ version: second, expect: null }])).result).toBe(false);
    expect((await (await store.now()).get(first['xt/id']))?.version.content).toBe('first');
    expect((await store.putMany([{ version: second, expect: toStored(first).head }])).result).toBe(true);
    expect((await (await store.now()).get(first['xt/id']))?.version.content).toBe('second');
  });

  test('leave nothing of a transaction with a failed guard', async () => {
    const taken = fileOf('/taken.ts', 'x');
    const other = fileOf('/other.ts', 'y');
    await store.putMany([{ version: taken }]);
    expect((await store.putMany([{ version: other }, { version: taken, expect: null }])).result).toBe(false);
    expect(await (await store.now()).get(other['xt/id'])).toBeUndefined();
  });

  test('accept exactly one of two concurrent inserts of an object', async () => {
    const stub = fileStub(sourceOf('/race.ts'));
    const others = [new ObjectStore(xtdb), new ObjectStore(xtdb)];
    const results = await Promise.all(others.map((each) => each.putMany([{ version: stub, expect: null }])));
    expect(results.map(({ result }) => result).sort()).toEqual([false, true]);
    await Promise.all(others.map((each) => each.close()));
  });

  test('share a text that two objects have', async () => {
    const content = `shared ${randomUUID()}\n`.repeat(1_000);
    const [one, two] = [fileOf('/shared-1.ts', content), fileOf('/shared-2.ts', content)];
    const first = store.putOps({ version: one });
    await store.putMany([{ version: one }]);
    expect(first.filter((op) => op.op === 'put').map((op) => op.op === 'put' && op.doc['xt/id'])).toContain(
      chunkId(String(one.content_hash)),
    );
    expect(store.putOps({ version: two }).map((op) => (op.op === 'put' ? op.doc['xt/id'] : op.id))).toEqual([
      two['xt/id'],
    ]);
    await store.putMany([{ version: two }]);
    expect((await (await store.now()).get(two['xt/id']))?.version.content).toBe(content);
  });

  test('are reported and not returned with a wrong stored hash', async () => {
    const file = fileOf('/damaged.ts', 'good');
    await xtdb.execute([{ op: 'put', doc: { ...toStored(file).head, content: 'evil' } }]);
    await expect((await store.now()).get(file['xt/id'])).rejects.toMatchObject({
      name: 'DocumentError',
      code: 'hash-mismatch',
    });
  });

  test('accept no writes in a closed store', async () => {
    const closed = new ObjectStore(xtdb);
    await closed.close();
    await closed.close();
    await expect(closed.putMany([{ version: fileOf('/late.ts', 'x') }])).rejects.toMatchObject({
      name: 'StoreError',
      code: 'closed',
    });
  });
});
