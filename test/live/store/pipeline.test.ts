import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { fileStub } from '../../../src/objects/versions.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { testAddress } from '../../support/context.js';
import { LateAnswers } from '../../support/late-answers.js';

const filesystem = filesystemId(`fs-${randomUUID()}`);
const stub = (path: string) => fileStub(filesystemSource(filesystem, canonicalPath(path)));

describe('the pipeline of a sole writer', () => {
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

  test('submits in request order over all lanes, each planned after its predecessor is logged', async () => {
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

  test('passes outcomes on in log order, even if an answer overtakes an earlier one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'palimpsest-pipeline-'));
    const proxy = await LateAnswers.open(folder);
    const late = new XtdbClient(proxy.address);
    const { writes } = new ObjectStore(late);
    const held = proxy.holdNext();
    try {
      const ended: string[] = [];
      const write = async (path: string): Promise<void> => {
        const plan = async () => ({ ops: store.putOps({ version: stub(path) }), result: path });
        ended.push((await writes.pipeline('late', plan, { onSubmitted: () => undefined })).result);
      };
      const all = Promise.all([write('/late/first'), write('/late/second')]);
      await held.overtaken;
      await delay(200);
      expect(ended).toEqual([]);
      held.release();
      await all;
      expect(ended).toEqual(['/late/first', '/late/second']);
    } finally {
      held.release();
      await writes.close();
      await late.close();
      await proxy.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('flushes once every outcome is known, lane by lane', async () => {
    let known = false;
    const write = store.writes.pipeline(
      'flushed',
      async () => ({ ops: store.putOps({ version: stub('/flushed') }), result: undefined }),
      {
        onSubmitted: () => undefined,
      },
    );
    write.then(
      () => {
        known = true;
      },
      () => undefined,
    );
    await store.writes.flush('flushed');
    expect(known).toBe(true);
  });

  test('does not retry a write that failed its guard, and continues after it', async () => {
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
    const behind = store.writes.pipeline(
      'a',
      async () => ({ ops: store.putOps({ version: stub('/behind') }), result: 'behind' }),
      {
        onSubmitted: () => undefined,
      },
    );
    await expect(refused).rejects.toMatchObject({ name: 'StoreError', code: 'conflict' });
    expect(await behind).toMatchObject({ result: 'behind' });
    expect(plans).toBe(2);
  });

  test('treats existing data as written', async () => {
    const there = stub('/there');
    await store.putMany([{ version: there }]);
    const plan = async (attempt: number) => ({
      ops: attempt === 1 ? store.putOps({ version: there, expect: null }) : [],
      result: attempt,
    });
    expect(await store.writes.pipeline('b', plan, { onSubmitted: () => undefined })).toEqual({
      result: 2,
      txId: undefined,
    });
  });

  test('releases ended writes while its lane stays busy', async () => {
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const results: WeakRef<object>[] = [];
    const write = (path: string, until?: Promise<void>) =>
      store.writes.pipeline(
        'busy',
        async () => {
          await until;
          const result = { path };
          results.push(new WeakRef(result));
          return { ops: store.putOps({ version: stub(path) }), result };
        },
        { onSubmitted: () => undefined },
      );
    const endOf = async (write: Promise<unknown>): Promise<void> => {
      await write;
    };
    const ended = Array.from({ length: 3 }, (_, i) => endOf(write(`/busy/${i}`)));
    const last = endOf(write('/busy/last', gate));
    await Promise.all(ended);
    setFlagsFromString('--expose-gc');
    // The target of a WeakRef stays alive until the end of the turn that created it.
    await nextTurn();
    runInNewContext('gc')();
    const kept = results.map((result) => result.deref());
    open();
    await last;
    expect(kept.slice(0, 3)).toEqual([undefined, undefined, undefined]);
  });
});
