import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { planWrite } from '../../../src/client/delivery/plan-write.js';
import type { CallReport } from '../../../src/client/session/call-report.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { hashText } from '../../../src/objects/hashes.js';
import { chatObjectId, sessionId, sessionObjectId } from '../../../src/objects/ids.js';
import { planMessage } from '../../../src/session/plan-step.js';
import { emptySession } from '../../../src/session/session-state.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { countRequests, mentions, openClient, wholeRead } from '../../support/context.js';
import { historyOf } from '../../support/object-history.js';
import { callReport as call } from '../../support/tracked-project.js';

/** Records a call and waits for its stored result. */
async function record(session: ContextSession, report: CallReport) {
  const recorded = await session.recordCall(report);
  return { ...recorded, ...(await recorded.applied) };
}

describe('a session at work', () => {
  let root: string;
  let client: ContextClient;
  let session: ContextSession;
  const file = (name: string) => join(root, name);

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-client-')));
    client = await openClient(root);
    session = await client.openSession();
  });

  afterEach(async () => {
    await client.close();
    await rm(root, { recursive: true, force: true });
  });

  test('full indexing: created, unchanged, updated [§5.6]', async () => {
    await writeFile(file('a.ts'), 'one');
    const first = await record(session, call({ readings: [await wholeRead(client, 'a.ts')], content: 'one' }));
    const again = await record(session, call({ readings: [await wholeRead(client, 'a.ts')], content: 'one' }));
    await writeFile(file('a.ts'), 'two');
    const changed = await record(session, call({ readings: [await wholeRead(client, 'a.ts')], content: 'two' }));
    expect([first, again, changed].map(({ outcomes }) => [...outcomes.values()])).toEqual([
      ['created'],
      ['unchanged'],
      ['updated'],
    ]);
    const [id] = [...first.outcomes.keys()];
    const history = await historyOf(await client.store.now(), id ?? '');
    expect(history.map(({ version }) => version?.content)).toEqual(['one', 'two']);
    expect(session.state.sets.index).toEqual([id, first.callId, again.callId, changed.callId]);
    expect(session.state.isActive(id as never)).toBe(true);
  });

  test('creates stubs on discovery once, never overwrites, and updates a stub by reading it [§5.6]', async () => {
    await writeFile(file('seen.ts'), 'text');
    const found = await record(session, call({ tool: 'ls', mentions: await mentions(client, ['seen.ts']) }));
    expect([...found.outcomes.values()]).toEqual(['created']);
    const [id] = [...found.outcomes.keys()];
    expect(session.metadata(id as never)).toMatchObject({ state: 'stub', charCount: 0 });
    expect(session.state.isActive(id as never)).toBe(false);
    const read = await record(session, call({ readings: [await wholeRead(client, 'seen.ts')], content: 'text' }));
    expect([...read.outcomes.values()]).toEqual(['updated']);
    const other = await client.openSession();
    const later = await record(other, call({ tool: 'ls', mentions: await mentions(client, ['seen.ts']) }));
    expect([...later.outcomes.values()]).toEqual(['unchanged']);
    expect((await session.load(id as never))?.version.content).toBe('text');
  });

  test('lists 200 paths with one query and one transaction, and needs no lookup the second time', async () => {
    const names = Array.from({ length: 200 }, (_, i) => `f${i}.ts`);
    await Promise.all(names.map((name) => writeFile(file(name), name)));
    const list = await mentions(client, names);
    const first = await countRequests(() => record(session, call({ tool: 'ls', mentions: list })));
    expect(first.requests['/_xtdb/query']).toBe(1);
    expect(first.requests['/_xtdb/submit-tx']).toBe(1);
    expect(first.result.outcomes.size).toBe(200);
    const second = await countRequests(() => record(session, call({ tool: 'ls', mentions: list })));
    expect(second.requests['/_xtdb/query']).toBeUndefined();
    expect(second.requests['/_xtdb/submit-tx']).toBe(1);
    expect(second.result.outcomes.size).toBe(0);
  });

  test('gives a deleted file a version without content, keeps its places, and lets it return [C3, C4]', async () => {
    await writeFile(file('gone.ts'), 'bytes');
    const read = await record(session, call({ readings: [await wholeRead(client, 'gone.ts')], content: 'bytes' }));
    const [id] = [...read.outcomes.keys()];
    const { source } = await client.files.locate('gone.ts');
    await unlink(file('gone.ts'));
    const plan = await session.planVerb('activate', ['gone.ts', id ?? '']);
    expect(plan.entries.map((entry) => !entry.ok && entry.failure)).toEqual(['deleted', 'deleted']);
    const again = await record(session, call({ tool: 'activate', plan, status: 'fail' }));
    expect(again.outcomes.get(id as never)).toBe('updated');
    expect(session.metadata(id as never)).toMatchObject({ state: 'deleted' });
    expect(session.state.isActive(id as never)).toBe(true);
    await writeFile(file('gone.ts'), 'bytes');
    const back = await record(
      session,
      call({ readings: [{ source, reading: await client.files.read(source), activate: true }] }),
    );
    expect(back.outcomes.get(id as never)).toBe('updated');
    expect((await session.load(id as never))?.version.content).toBe('bytes');
  });

  test('reads a stub before activating it; deactivate, pin and unpin report their effect [§3.3, D1-D3]', async () => {
    await writeFile(file('stub.ts'), 'now read');
    const listed = await record(session, call({ tool: 'ls', mentions: await mentions(client, ['stub.ts']) }));
    const [id = '' as never] = [...listed.outcomes.keys()];
    const plan = await session.planVerb('activate', [file('stub.ts')]);
    expect(plan.entries).toMatchObject([
      { ok: true, changes: true, text: 'now read', metadata: { state: 'indexed', charCount: 8 } },
    ]);
    await record(session, call({ tool: 'activate', plan }));
    expect(session.state.isActive(id)).toBe(true);
    const pin = await session.planVerb('pin', [id.slice(0, 8)]);
    await record(session, call({ tool: 'pin', plan: pin }));
    expect(session.state.isPinned(id)).toBe(true);
    const off = await session.planVerb('deactivate', [id]);
    await record(session, call({ tool: 'deactivate', plan: off }));
    expect([session.state.isActive(id), session.state.isPinned(id)]).toEqual([false, true]);
    const refused = await session.planVerb('deactivate', [id, 'nothing-like-this', sessionObjectId(session.id)]);
    expect(refused.entries.map((entry) => !entry.ok && entry.failure)).toEqual([
      'not-active',
      'unknown',
      'infrastructure',
    ]);
    const unpin = await session.planVerb('unpin', [id, id]);
    expect(unpin.entries.every((entry) => entry.ok)).toBe(true);
  });

  test('distinguishes activation failures [decision D5]', async () => {
    await writeFile(file('binary.bin'), Buffer.from([0xff, 0xfe, 0x00, 0x01]));
    await writeFile(file('later-outside.ts'), 'x');
    await record(session, call({ tool: 'ls', mentions: await mentions(client, ['binary.bin', 'later-outside.ts']) }));
    await unlink(file('later-outside.ts'));
    await symlink('/etc/hostname', file('later-outside.ts'));
    const plan = await session.planVerb('activate', ['binary.bin', 'later-outside.ts'].map(file));
    expect(plan.entries.map((entry) => !entry.ok && entry.failure)).toEqual([
      'not-text',
      expect.stringMatching(/^(inaccessible|outside-roots)$/),
    ]);
  });

  test('dates the later of two contents from two clients in one millisecond after the earlier [F7]', async () => {
    await writeFile(file('a.ts'), 'x');
    const clients = await Promise.all([1, 2].map(() => openClient(root, { track: false })));
    const [first, second] = clients as [ContextClient, ContextClient];
    const { source, id } = await first.files.locate('a.ts');
    const mtimeMs = 1_700_000_000_000;
    const reading = (content: string) => ({
      kind: 'text' as const,
      content,
      fileHash: hashText(content),
      size: content.length,
      mtimeMs,
    });
    const other = sessionId(`same-moment-${randomUUID()}`);
    const step = planMessage(
      emptySession(other),
      { message: { role: 'user', text: 'look' }, at: Date.now() },
      DEFAULT_POLICY,
    );
    const files = [{ kind: 'read', source, reading: reading('later') }] as const;
    const { plan } = planWrite(
      second.store,
      { session: other, lease: null, step, files, heads: [], at: step.at },
      { seen: false },
    );
    await second.store.writes.write(other, async (attempt) => {
      const planned = await plan(attempt);
      // The first client's version arrives between this one's decision and its write.
      if (attempt === 1)
        await record(
          await first.openSession(),
          call({ readings: [{ source, reading: reading('earlier'), activate: true }], content: 'earlier' }),
        );
      return planned;
    });
    const history = await historyOf(await first.store.latest(), id);
    expect(history.map(({ version, validTime }) => [version?.content, validTime.getTime()])).toEqual([
      ['earlier', mtimeMs],
      ['later', mtimeMs + 1],
    ]);
    await Promise.all(clients.map((one) => one.close()));
  });

  test('does not count a step applied by an earlier process as written here', async () => {
    await writeFile(file('a.ts'), 'x');
    const { source } = await client.files.locate('a.ts');
    const reading = {
      kind: 'text' as const,
      content: 'first',
      fileHash: hashText('first'),
      size: 5,
      mtimeMs: 1_700_000_000_000,
    };
    const other = sessionId(`applied-before-${randomUUID()}`);
    const step = planMessage(
      emptySession(other),
      { message: { role: 'user', text: 'look' }, at: Date.now() },
      DEFAULT_POLICY,
    );
    const write = {
      session: other,
      lease: null,
      step,
      files: [{ kind: 'read', source, reading }],
      heads: [],
      at: step.at,
    } as const;
    await client.store.writes.write(other, planWrite(client.store, write, { seen: false }).plan);
    // Another client writes the file before that process's journal is delivered again.
    const later = {
      source,
      reading: { ...reading, content: 'second', fileHash: hashText('second'), mtimeMs: 1_700_000_001_000 },
      activate: true,
    };
    await record(session, call({ readings: [later], content: 'second' }));
    const { plan } = planWrite(client.store, write, { seen: true });
    expect((await plan(1)).ops).not.toEqual([]);
    expect(await plan(2)).toMatchObject({ ops: [], result: { written: [], files: [], observed: [] } });
  });

  test('dates a file version by modification time, and a step by its acknowledgement [decision F7]', async () => {
    await writeFile(file('dated.ts'), 'x');
    const before = Date.now();
    const reading = await wholeRead(client, 'dated.ts');
    const { outcomes, callId } = await record(session, call({ readings: [reading] }));
    const snapshot = await client.store.now();
    const [version] = await historyOf(snapshot, [...outcomes.keys()][0] ?? '');
    const [step] = await historyOf(snapshot, callId);
    expect(version?.validTime.getTime()).toBe(reading.reading.kind === 'text' ? reading.reading.mtimeMs : 0);
    expect(step?.validTime.getTime()).toBeGreaterThanOrEqual(before);
  });

  test('resumes with its sets, chat and prompt, and the previous writer notices the takeover [F5]', async () => {
    await session.setSystemPrompt('You are a coding agent.');
    await session.reportMessage({ role: 'user', text: 'read it' });
    await writeFile(file('r.ts'), 'resume me');
    await record(session, call({ readings: [await wholeRead(client, 'r.ts')], content: 'resume me' }));
    const assembled = await session.assemble();
    const other = await openClient(root, { filesystemId: client.files.access.mounts.localFilesystemId });
    try {
      const resumed = await other.openSession({ id: session.id });
      expect(resumed.state.sets).toEqual(session.state.sets);
      expect(resumed.state.turns).toEqual(session.state.turns);
      expect((await resumed.assemble()).text).toBe(assembled.text);
      await record(resumed, call({ content: 'by the second' }));
      await expect(record(session, call({ content: 'by the first' }))).rejects.toMatchObject({
        name: 'SessionError',
        code: 'taken-over',
      });
      expect((await (await other.store.now()).steps(session.id)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    } finally {
      await other.close();
    }
    const again = await openClient(root, { filesystemId: client.files.access.mounts.localFilesystemId });
    await again.openSession({ id: session.id });
    await again.close();
    client = await openClient(root);
  });

  test('proves the answer that the agent got [decision E7]', async () => {
    const { answer } = await record(session, call());
    const [step] = await (await client.store.now()).steps(session.id);
    expect(step?.call?.answer).toMatchObject({ sha256: hashText(answer), chars: answer.length });
  });

  test('turns overlapping calls into consecutive steps', async () => {
    const calls = await Promise.all(
      Array.from({ length: 20 }, (_, i) => record(session, call({ content: `output ${i}` }))),
    );
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(20);
    const steps = await (await client.store.now()).steps(session.id);
    expect(steps.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(session.state.sets.active).toHaveLength(5);
  });

  test('keeps harness ids, and makes them unique across chats and for repeats [decision B2]', async () => {
    const other = await client.openSession();
    const id = `call-${session.id}`;
    const first = await record(session, call({ callId: id }));
    const repeat = await record(session, call({ callId: id }));
    const elsewhere = await record(other, call({ callId: id }));
    expect([first.callId, repeat.callId, elsewhere.callId]).toEqual([id, `${id}~2`, `${id}@${other.id}`]);
  });

  test('writes chat and session versions at start and end of a turn, with correct hashes [decision G4]', async () => {
    for (const text of ['first', 'second', 'third']) {
      await session.reportMessage({ role: 'user', text });
      await record(session, call({ content: text }));
    }
    await client.closeSession(session);
    const snapshot = await client.store.now();
    const chats = await historyOf(snapshot, chatObjectId(session.id));
    expect(chats.map(({ version, marks }) => [version?.type === 'chat' && version.turn_count, marks.upto])).toEqual([
      [0, 0],
      [1, 1],
      [1, 2],
      [2, 3],
      [2, 4],
      [3, 5],
      [3, 6],
    ]);
    expect(await historyOf(snapshot, sessionObjectId(session.id))).toHaveLength(7);
    session = await client.openSession({ id: session.id });
    expect(session.state.turn).toBe(3);
  });

  test('reads the sets of a long session from the last snapshot, with the same fold', async () => {
    for (let i = 0; i < 205; i++) await record(session, call({ tool: 'bash', content: `out ${i}` }));
    const snapshot = await client.store.now();
    const { sets, seq, indexedAtSnapshot } = await snapshot.sets(session.id);
    expect([seq, indexedAtSnapshot]).toEqual([205, 200]);
    expect(sets).toEqual(session.state.sets);
    expect((await snapshot.get(sessionObjectId(session.id)))?.version).toMatchObject({
      session_index: session.state.sets.index,
    });
  });

  test('keeps head and tail of outputs over the cap in content and the whole as chunks [B8, C6]', async () => {
    const output = 'a line of output\n'.repeat(100_000);
    const { callId } = await record(session, call({ tool: 'bash', content: output }));
    const loaded = await session.load(callId);
    expect(loaded?.version.content?.length).toBeLessThan(90_000);
    expect(await loaded?.wholeText()).toBe(output);
  });

  test('stores a large file whole in chunks, with its hash over all of it', async () => {
    const text = 'row of a large file\n'.repeat(150_000);
    await writeFile(file('large.txt'), text);
    const { outcomes } = await record(session, call({ readings: [await wholeRead(client, 'large.txt')] }));
    const [id = '' as never] = [...outcomes.keys()];
    const loaded = await session.load(id);
    expect(loaded?.version.file_hash).toBe(hashText(text));
    expect(loaded?.version.content_hash).not.toBe(loaded?.version.file_hash);
    expect(await loaded?.wholeText()).toBe(text);
  });

  test('refuses calls after closing; a second close is harmless', async () => {
    await Promise.all([session.close(), session.close()]);
    await expect(record(session, call())).rejects.toMatchObject({ code: 'closed' });
  });
});
