import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readProjection } from '../../../src/contracts/projection/read-projection.js';
import { RecordMemory, type RememberedItems } from '../../../src/contracts/tyrum/agent-memory.js';
import { changedMemory } from '../../../src/contracts/tyrum/change-memory.js';
import { consolidateMemory, type MemoryBudget } from '../../../src/contracts/tyrum/consolidate-memory.js';
import { askedMoment } from '../../../src/history/rebuild/moment.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { ContextRecord, RecordBody, RecordKind, RecordOwner } from '../../../src/objects/context-record.js';
import {
  chatObjectId,
  isPartId,
  objectId,
  type SessionId,
  sessionId,
  sessionObjectId,
} from '../../../src/objects/ids.js';
import { runQuery } from '../../../src/review/ask/run-query.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { toRecordPart } from '../../../src/store/context-records.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { fromDocument } from '../../../src/xtdb/documents.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { countRequests, testAddress } from '../../support/context.js';
import { historyOf } from '../../support/object-history.js';
import { onOneNode } from '../../support/on-one-node.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';
import { executeForeign } from '../../support/xtdb.js';

const SHA = 'a'.repeat(64);
const TOKENS = { counter: 'bytes', extra: { native: { nested: [1, null, 'text'] } } };

const BODIES: { readonly [Kind in RecordKind]: RecordBody<Kind> } = {
  budget: {
    target: 'model',
    max: 4_000,
    actual: 3_000,
    segments: [{ name: 'chat', actual: 2_000, items: ['m1'] }],
    ...TOKENS,
  },
  selection: {
    surface: 'turn',
    candidates: ['m1', 'r2'],
    selected: ['m1'],
    omitted: [{ item: 'r2', reason: 'budget_limit' }],
  },
  injection: { target: 'model', point: 'message_history', visibility: ['model'], sha256: SHA, items: ['m1'] },
  compaction: {
    trigger: 'token_pressure',
    method: 'structured_digest',
    before: 9,
    after: 4,
    lines: ['r2'],
    gone: [],
    cut: [],
    state: { lines: ['r2'] },
    ...TOKENS,
  },
  report: { format: 'tyrum', name: 'b7', body: { chars: 12, sections: [] } },
  event: { type: 'context.exported', data: { to: 'folder' } },
  missing: { question: 'Which branch?', severity: 'blocking', status: 'open', candidates: [], blocked: ['merge'] },
  memory: {
    name: 'fact.1',
    item: 'fact',
    content: { key: 'k', value: 1 },
    tags: ['t'],
    sensitivity: 'private',
    provenance: { source: 'user' },
  },
  tombstone: { name: 'fact.1', by: 'budget', reason: 'too many' },
  note: { name: 'd1', note: 'decision', text: 'We use records', source: 'm1' },
  approval: { approval: 'ask-1', state: 'pending', text: 'rm -r build', tool: 'bash' },
  review: { object: 'call_9', verdict: 'wrong', text: 'It ran in another folder', by: 'me' },
  call: { native: 'call_9', tool: 'bash', args: { command: 'make' }, by: 9 },
  import: { format: 'cortexfs', whole: SHA, part: 0, parts: 2, text: '{"files"' },
};
const KINDS = Object.keys(BODIES) as RecordKind[];

describe('context records', () => {
  const name = `recorded-${randomUUID()}`;
  const session: SessionId = sessionId(`${name}-first`);
  let sessions: ReviewedSessions;
  let store: ObjectStore;
  let at: number;

  function recordOf<Kind extends RecordKind>(kind: Kind, more: Partial<ContextRecord<Kind>> = {}): ContextRecord {
    const basis = { validTime: at, txId: 1 };
    return {
      kind,
      owner: { session },
      turn: 3,
      seq: 10,
      at,
      basis,
      sources: [{ id: 'm1', objectHash: SHA }],
      body: BODIES[kind],
      ...more,
    } as never;
  }
  const everyObject = async () => {
    const snapshot = await store.latest();
    return Promise.all(
      [sessionObjectId(session), chatObjectId(session), sessions.file, sessions.hostileCall].map((id) =>
        historyOf(snapshot, id),
      ),
    );
  };

  beforeAll(async () => {
    sessions = await reviewedSessions(name);
    store = await sessions.client.delivered();
    at = Date.now();
  });
  afterAll(() => sessions?.close());

  test('are stored in one transaction, come back unchanged, and change no object, answer or context', async () => {
    const objects = await everyObject();
    const before = await verifySession(store, session);
    const all = KINDS.map((kind) => recordOf(kind));
    const { result: written, requests } = await countRequests(() => store.putRecords(all));
    expect(requests['/_xtdb/submit-tx']).toBe(1);
    expect(written.result.every(isPartId)).toBe(true);
    const found = await (await store.latest()).records(session, { kinds: KINDS });
    expect(found.toSorted((a, b) => (a.kind < b.kind ? -1 : 1))).toEqual(
      all.toSorted((a, b) => (a.kind < b.kind ? -1 : 1)),
    );
    // A repeated write finds them stored.
    expect(await store.putRecords(all)).toEqual({ result: written.result, txId: undefined });
    expect(await everyObject()).toEqual(objects);
    const parts = { ...before.parts, checked: before.parts.checked + all.length };
    expect(await verifySession(store, session)).toEqual({ ...before, parts });
  });

  test('appear only in queries about storage', async () => {
    const snapshot = await store.latest();
    const ask = (query: string, storage: boolean) => runQuery(snapshot, query, { storage });
    expect((await ask('[:find ?e :where [?e :type "record"]]', false)).rows).toEqual([]);
    const report = toRecordPart(recordOf('report')).record_ref;
    expect((await ask(`[:find ?e :where [?e :type "record"] [?e :record_ref "${report}"]]`, true)).rows).toHaveLength(
      1,
    );
    await expect(ask('[:find ?e :where [?e :record_ref ?r]]', false)).rejects.toMatchObject({ code: 'query-refused' });
  });

  test('are absent before their transaction and before their valid time', async () => {
    const later = recordOf('event', { at: at + 5, body: { type: 'later', data: null } });
    const { txId } = await store.putRecords([later]);
    const kinds = ['event'] as const;
    const types = async (basis: Parameters<ObjectStore['asOf']>[0]) =>
      (await (await store.asOf(basis)).records(session, { kinds })).map(({ body }) => body.type);
    expect(await types({ txId: txId as number, validTime: new Date(at + 5) })).toEqual(['context.exported', 'later']);
    expect(await types({ txId: (txId as number) - 1, validTime: new Date(at + 5) })).toEqual(['context.exported']);
    expect(await types({ txId: txId as number, validTime: new Date(at + 4) })).toEqual(['context.exported']);
  });

  test('give a memory item versions, and remove it with a tombstone in one transaction', async () => {
    const owner: RecordOwner = { agent: `${name}-agent` };
    const item = (value: unknown, moment: number) =>
      recordOf('memory', { owner, turn: 0, seq: 0, at: moment, body: { ...BODIES.memory, content: value as never } });
    const first = await store.putRecords([item({ key: 'k', value: 1 }, at)]);
    await store.putRecords([item({ key: 'k', value: 2 }, at + 1)]);
    await store.putRecords([item(null, at + 2), recordOf('tombstone', { owner, turn: 0, seq: 0, at: at + 2 })]);
    const contents = async (basis: Parameters<ObjectStore['asOf']>[0]) =>
      (await (await store.asOf(basis)).records({ agent: `${name}-agent` }, { kinds: ['memory', 'tombstone'] })).map(
        ({ kind, body }) => [kind, 'content' in body ? body.content : body.name],
      );
    expect(await contents({ txId: first.txId as number, validTime: new Date(at) })).toEqual([
      ['memory', { key: 'k', value: 1 }],
    ]);
    expect(await contents({ validTime: new Date(at + 1) })).toEqual([['memory', { key: 'k', value: 2 }]]);
    expect((await contents({ validTime: new Date(at + 2) })).toSorted()).toEqual([
      ['memory', null],
      ['tombstone', 'fact.1'],
    ]);
    expect(await (await store.latest()).records(session, { kinds: ['memory'] })).toHaveLength(1);
  });

  test('replace the previous version of a memory item, even if the writer’s clock is behind', async () => {
    const owner: RecordOwner = { agent: `${name}-clocks` };
    const put = (value: number, moment: number) =>
      store.putRecords([
        recordOf('memory', { owner, turn: 0, seq: 0, at: moment, body: { ...BODIES.memory, content: value } }),
      ]);
    const newest = async () =>
      (await (await store.latest()).records(owner, { kinds: ['memory'] })).map(({ body }) => body.content);
    await put(1, at + 100);
    await put(2, at + 50);
    expect(await newest()).toEqual([2]);
    await put(3, at + 60);
    expect(await newest()).toEqual([3]);
    await put(3, at + 60);
    expect(await newest()).toEqual([3]);
  });

  onOneNode(
    'a memory that another writer changed after it was read is decided anew: nothing forgotten comes back, no ' +
      'correction is lost',
    async () => {
      const agent = `${name}-two`;
      const other = new RecordMemory(store, agent);
      // The same database from another process.
      const xtdb = new XtdbClient(testAddress());
      const elsewhere = new ObjectStore(xtdb);
      let between: (() => Promise<unknown>) | undefined;
      const meanwhile = async () => {
        const work = between;
        between = undefined;
        await work?.();
      };
      const first = new RecordMemory(
        {
          latest: () => elsewhere.latest(),
          putRecords: async (records) => {
            if (typeof records === 'function')
              return elsewhere.putRecords(async (snapshot) => {
                const decided = await records(snapshot);
                await meanwhile();
                return decided;
              });
            await meanwhile();
            return elsewhere.putRecords(records);
          },
        },
        agent,
      );
      const remembering = { agent, at };
      const changed =
        (put: readonly unknown[], forget: readonly string[] = [], budget?: MemoryBudget) =>
        (held: RememberedItems) =>
          changedMemory(held, { put, forget: forget.map((id) => ({ id, by: 'user' as const })), budget, remembering });
      const roomy = { items: 9, chars: 9_000 };
      const same = ['123e4567-e89b-42d3-a456-426614174001', '123e4567-e89b-42d3-a456-426614174002'] as const;
      const putBoth = () =>
        first.change(
          changed(same.map((id, i) => ({ kind: 'fact', key: 'port', value: 80, memory_item_id: id, tags: [`t${i}`] }))),
          at,
        );

      const { put } = await putBoth();
      // The item that a consolidation would keep, with the search data of the other.
      const [kept] = consolidateMemory(put, roomy).put;
      const id = String(kept?.memory_item_id);
      between = () => other.change(changed([], [id]), at);
      const made = await first.change(changed([], [], roomy), at);
      expect([made.put, made.bury]).toEqual([[], []]);
      const { items, tombstones } = await other.read();
      expect([items.map((item) => item.memory_item_id), tombstones.map((one) => one.memory_item_id)]).toEqual([
        same.filter((one) => one !== id),
        [id],
      ]);

      await putBoth();
      between = () => other.change(changed([{ kind: 'fact', key: 'port', value: 8080, memory_item_id: id }]), at + 5);
      await first.change(changed([], [], roomy), at + 5);
      expect((await other.read()).items).toMatchObject([{ memory_item_id: id, value: 8080 }]);

      between = () => other.change(changed([], [id]), at + 6);
      await expect(first.change(changed([], [id]), at + 7)).rejects.toMatchObject({ code: 'unknown-memory' });
      await elsewhere.close();
      await xtdb.close();
    },
  );

  test('are refused with their whole batch if one is invalid; the error names the field', async () => {
    const good = recordOf('event', { body: { type: 'in a bad batch', data: {} } });
    const bad: readonly (readonly [ContextRecord, RegExp])[] = [
      [recordOf('budget', { body: { ...BODIES.budget, max: -1 } }), /kind "budget" is not valid at body\.max/],
      [recordOf('event', { seq: 1.5 }), /at seq/],
      [recordOf('event', { at: 9e15 }), /not valid at at: it is later than 9999-12-31/],
      [recordOf('event', { body: { type: 'x', data: 'y'.repeat(600_000) } }), /at most 524288 can be kept/],
      [recordOf('event', { body: { type: 'x', data: '\ud800' } }), /a lone surrogate/],
      [{ ...good, kind: 'chat' } as never, /unknown record kind "chat"/],
      [{ ...good, owner: { agent: 'a b' } }, /at owner/],
      [{ ...good, more: 1 } as never, /not valid at its top/],
      [{ ...good, owner: { session: sessionId('nobody-there') } }, /does not hold/],
    ];
    for (const [record, message] of bad) await expect(store.putRecords([good, record])).rejects.toThrow(message);
    const found = await (await store.latest()).records(session, { kinds: ['event'] });
    expect(found.map(({ body }) => body.type)).not.toContain('in a bad batch');
  });

  test('have ids that no object and no outside call can have', async () => {
    const [id] = (await store.putRecords([recordOf('report')])).result;
    expect(() => objectId(String(id))).toThrow(/names a part/);
  });

  test('show approvals and pending calls in the projection; a fork has the earlier ones', async () => {
    await store.putRecords([
      recordOf('approval', {
        seq: 2,
        turn: 1,
        at: at + 1,
        body: { ...BODIES.approval, approval: 'ask-0', text: 'read it' },
      }),
      recordOf('approval', {
        at: at + 2,
        body: { approval: 'ask-0', state: 'approved', text: 'read it', reason: 'it is ours' },
      }),
    ]);
    const timeline = await Timeline.open(store);
    const now = await readProjection(timeline, session);
    const approvals = now.entries.flatMap((entry) =>
      entry.kind === 'approval' ? [[entry.turn, entry.state, entry.text]] : [],
    );
    expect(approvals).toEqual([
      [1, 'approved', 'read it'],
      [3, 'pending', 'rm -r build'],
    ]);
    expect(now.running).toMatchObject({ turn: 3, calls: [{ native: 'call_9', state: 'pending' }] });
    // They were not known when the turn ended.
    const then = await readProjection(timeline, session, { when: askedMoment({ at: 'turn:3' }) });
    expect(then.entries.filter(({ kind }) => kind === 'approval')).toEqual([]);
    const fork = await sessions.client.forkSession(session, { at: 4, id: `${name}-fork` });
    await fork.reportMessage({ role: 'user', text: 'Go on' });
    const ofFork = await readProjection(await Timeline.open(await sessions.client.delivered()), fork.id);
    expect(ofFork.entries.flatMap((entry) => (entry.kind === 'approval' ? [entry.text] : []))).toEqual(['read it']);
  });

  test('are detected by readers and by verify after a change in the database', async () => {
    const record = recordOf('event', { seq: 8, body: { type: 'as it was', data: null } });
    await store.putRecords([record]);
    const checked = (await verifySession(store, session)).parts.checked;
    const part = toRecordPart(record);
    await executeForeign('put', fromDocument({ ...part, text: String(part.text).replace('as it was', 'as it is') }));
    const snapshot = await store.latest();
    await expect(snapshot.records(session, { kinds: ['event'] })).rejects.toMatchObject({ code: 'corrupt-part' });
    const damaged: string[] = [];
    const found = await snapshot.records(session, {
      kinds: ['event'],
      onDamaged: ({ message }) => damaged.push(message),
    });
    expect(found.map(({ body }) => body.type)).toEqual(['context.exported', 'later']);
    expect(damaged).toHaveLength(1);
    const { ok, parts } = await verifySession(store, session);
    expect(ok).toBe(false);
    expect(parts.damages).toEqual([{ part: part['xt/id'], what: 'damaged', of: 'the records of its contexts' }]);
    expect(parts.checked).toBe(checked);
  });
});
