import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { rebuildAssembly } from '../../../src/history/rebuild/find-assembly.js';
import { hashText } from '../../../src/objects/hashes.js';
import { type FilesystemId, filesystemId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { toAssemblyPart } from '../../../src/store/assemblies.js';
import { stepId } from '../../../src/store/step-part.js';
import { chunkId } from '../../../src/store/texts.js';
import { testAddress, wholeRead } from '../../support/context.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { Road } from '../../support/road.js';
import { callReport } from '../../support/tracked-project.js';
import { executeForeign, openTestClient } from '../../support/xtdb.js';

describe('a handed-out context', () => {
  let root: string;
  let road: Road;
  let host: FilesystemId;
  const clients: ContextClient[] = [];
  /** The node of a test that damages texts, because other suites read every session meanwhile. */
  let damaged: OwnNode | undefined;

  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    const client = await ContextClient.create({
      address: damaged?.address ?? testAddress(),
      roots: [root],
      cwd: root,
      filesystemId: host,
      ...options,
    });
    clients.push(client);
    return client;
  };

  /** Another process with only the database: other files, another filesystem, no mounts. */
  const reviewer = (): Promise<ContextClient> =>
    open({ filesystemId: filesystemId(`fs-${randomUUID()}`), roots: [tmpdir()], cwd: '/' });

  const byRoad = () => ({ address: road.address, dataDir: join(root, 'data'), track: false });

  const read = async (client: ContextClient, session: ContextSession, name: string, content: string) => {
    await writeFile(join(root, name), content);
    const reading = await wholeRead(client, name);
    return session.recordCall(
      callReport({ content, args: { path: name }, readings: [reading], answer: (id) => `[file id=${id}]\n${content}` }),
    );
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-verify-')));
    host = filesystemId(`fs-${randomUUID()}`);
    road = new Road(root);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await road.close();
    await damaged?.stop();
    damaged = undefined;
    await rm(root, { recursive: true, force: true });
  });

  test('is rebuilt byte for byte by another process, without the files [§1.2, decision E7]', async () => {
    const mounts = [{ agentPrefix: '/workspace', canonicalPrefix: root }];
    const client = await open({ mounts, cwd: '/workspace' });
    const session = await client.openSession();
    const texts = new Map<number, string>();
    for (let i = 0; i < 8; i++) {
      await session.setSystemPrompt(`prompt ${i % 3}`);
      await session.reportMessage({ role: 'user', text: `turn ${i} ${'and so on '.repeat(i * 60)}` });
      await read(client, session, `file-${i % 3}.ts`, `version ${i} of the file\n`.repeat(100 + i * 40));
      const options = { shortIds: i % 2 === 0, strict: i % 3 === 0 };
      const { text, record } = await session.assemble({ ...options, deliver: 'library' });
      const messages = await session.assemble({ ...options, deliver: 'http', renderer: 'messages' });
      expect(messages.asMessages().record).toMatchObject({ renderer: 'messages', delivered: 'http' });
      expect(text).toContain('/workspace/file-');
      texts.set(record.turn, text);
    }
    await client.snapshot();
    await rm(root, { recursive: true, force: true });
    const other = await reviewer();
    const report = await verifySession(await other.delivered(), session.id);
    expect(report).toMatchObject({
      ok: true,
      contexts: { total: 16, equal: 16, byDelivery: { library: 8, http: 8 }, inherited: 0, unequal: [] },
      answers: { total: 8, equal: 8, keptOnly: 0 },
      parts: { damages: [] },
    });
    for (const [turn, text] of texts) {
      const [proof] = (await (await other.snapshot()).assemblies(session.id)).filter(
        (kept) => kept.turn === turn && kept.renderer === 'text',
      );
      const rebuilt = await rebuildAssembly(await other.delivered(), session.id, { turn, step: proof?.step as number });
      expect(rebuilt.equal).toBe(true);
      if (rebuilt.proof.renderer === 'text') expect(rebuilt.rendered.whole).toBe(text);
      expect(proof?.sha256).toBe(hashText(text));
    }
  });

  test('is recorded once per text, and not without a delivery', async () => {
    const client = await open();
    const session = await client.openSession();
    await read(client, session, 'a.ts', 'one');
    const { record } = await session.assemble();
    expect(record.delivered).toBeUndefined();
    expect(await (await client.snapshot()).assemblies(session.id)).toEqual([]);
    await session.assemble({ deliver: 'library' });
    await session.assemble({ deliver: 'library' });
    const other = await open();
    const again = await client.closeSession(session).then(() => other.openSession({ id: session.id }));
    await again.assemble({ deliver: 'library' });
    expect(await (await other.snapshot()).assemblies(session.id)).toHaveLength(1);
    await again.assemble({ deliver: 'http' });
    await again.assemble({ deliver: 'library', strict: true });
    expect(await (await other.snapshot()).assemblies(session.id)).toHaveLength(3);
  });

  test('is proved although its process died before the database had the proof [decision H5]', async () => {
    await road.open();
    const first = await open(byRoad());
    const session = await first.openSession();
    await read(first, session, 'a.ts', 'const a = 1;');
    const { text, record } = await session.assemble();
    await first.snapshot();
    await road.close();
    // Assembled with the database, handed out without it. The rest is in the journal.
    await session.deliver(record, { delivered: 'library' });
    expect((await session.assemble({ deliver: 'library' })).record).toMatchObject({
      sha256: hashText(text),
      basis: undefined,
    });
    await session.assemble({ deliver: 'library', renderer: 'messages' });
    const copy = join(root, 'copy');
    cpSync(join(root, 'data', 'journal'), join(copy, 'journal'), { recursive: true });
    for (const name of await readdir(join(copy, 'journal')))
      if (name.endsWith('.lock')) await truncate(join(copy, 'journal', name));
    const second = await open({ dataDir: copy, track: false });
    expect(await verifySession(await second.delivered(), session.id)).toMatchObject({
      ok: true,
      contexts: { total: 2, equal: 2 },
    });
    // The first process lives on and delivers it too.
    await road.open();
    await first.snapshot();
    expect((await verifySession(await second.delivered(), session.id)).contexts).toMatchObject({ total: 2, equal: 2 });
  });

  test('from an outage of the database is rebuilt by its step', async () => {
    const client = await open(byRoad());
    const session = await client.openSession();
    await session.setSystemPrompt('prompt');
    for (let i = 0; i < 5; i++) {
      await session.reportMessage({ role: 'user', text: `turn ${i}` });
      await read(client, session, `file-${i % 2}.ts`, `version ${i}`);
      const { record } = await session.assemble({ deliver: 'library' });
      expect(record.basis).toBeUndefined();
      await session.setSystemPrompt(`prompt ${i}`);
      await session.assemble({ deliver: 'library' });
    }
    await road.open();
    await client.snapshot();
    expect(await verifySession((await reviewer()).store, session.id)).toMatchObject({
      ok: true,
      contexts: { total: 10, equal: 10 },
    });
  });

  test('of an overtaken writer is proved in the fork with its steps [decision F6]', async () => {
    await road.open();
    const first = await open({ ...byRoad() });
    const session = await first.openSession();
    await (await session.recordCall(callReport({ content: 'before' }))).applied;
    await session.assemble({ deliver: 'library' });
    await first.snapshot();
    await road.close();
    const lost = await session.recordCall(callReport({ content: 'acknowledged, not delivered' }));
    lost.applied.catch(() => undefined);
    const { text } = await session.assemble({ deliver: 'library' });
    expect(text).toContain('acknowledged, not delivered');
    const elsewhere = await open();
    const other = await elsewhere.openSession({ id: session.id });
    await other.recordCall(callReport({ content: 'by the other writer' }));
    await other.assemble({ deliver: 'library' });
    await road.open();
    await expect(lost.applied).rejects.toMatchObject({ code: 'taken-over' });
    await first.snapshot();
    const fork = (await elsewhere.listSessions()).find(({ parent }) => parent?.session === session.id);
    const report = await verifySession(await elsewhere.delivered(), fork?.id ?? '');
    expect(report).toMatchObject({ ok: true, contexts: { total: 2, equal: 2, inherited: 1 } });
    expect(await verifySession(await elsewhere.delivered(), session.id)).toMatchObject({
      ok: true,
      contexts: { total: 2, equal: 2, inherited: 0 },
    });
    const own = (await (await elsewhere.snapshot()).assemblies(fork?.id as never)).at(-1);
    expect(own).toMatchObject({ session: fork?.id, rescuedFrom: session.id, sha256: hashText(text) });
  });

  test('of a forked session stays with it: the fork has the contexts up to its start [decision F2]', async () => {
    const client = await open();
    const parent = await client.openSession();
    for (let i = 0; i < 4; i++) {
      await parent.reportMessage({ role: 'user', text: `turn ${i}` });
      await parent.assemble({ deliver: 'library' });
    }
    const fork = await client.forkSession(parent.id, { at: 2 });
    await fork.assemble({ deliver: 'library' });
    await fork.reportMessage({ role: 'user', text: 'another way' });
    await fork.assemble({ deliver: 'library' });
    const proofs = await (await client.snapshot()).assemblies(fork.id);
    expect(proofs.map(({ session, step }) => [session, step])).toEqual([
      [parent.id, 1],
      [parent.id, 2],
      [fork.id, 2],
      [fork.id, 3],
    ]);
    expect(await verifySession(await client.delivered(), fork.id)).toMatchObject({
      ok: true,
      contexts: { total: 4, equal: 4, inherited: 2 },
    });
    expect(await verifySession(await client.delivered(), parent.id)).toMatchObject({
      ok: true,
      contexts: { total: 4, equal: 4, inherited: 0 },
    });
  });

  test('from a clock that stepped back is rebuilt', async () => {
    const later = Date.now() + 3_600_000;
    const ahead = await open({ clock: () => later });
    const session = await ahead.openSession();
    await session.setSystemPrompt('prompt');
    await read(ahead, session, 'a.ts', 'one');
    await session.assemble({ deliver: 'http' });
    await ahead.closeSession(session);
    const client = await open();
    const resumed = await client.openSession({ id: session.id });
    const { text } = await resumed.assemble({ deliver: 'library' });
    expect(text).toContain('\none');
    await resumed.reportMessage({ role: 'user', text: 'go on' });
    await resumed.assemble({ deliver: 'library' });
    await client.snapshot();
    expect(await verifySession((await reviewer()).store, session.id)).toMatchObject({
      ok: true,
      contexts: { total: 3, equal: 3 },
    });
  });

  test('is reported damaged with the damaged object after a manual write to the database', async () => {
    damaged = await ownNode();
    const client = await open();
    const session = await client.openSession();
    const content = 'a line of the file\n'.repeat(400);
    await read(client, session, 'a.ts', content);
    await session.assemble({ deliver: 'library' });
    await client.snapshot();
    const chunk = chunkId(hashText(content));
    const xtdb = openTestClient({}, damaged.address);
    try {
      await xtdb.execute([
        {
          op: 'put',
          doc: { 'xt/id': chunk, type: 'chunk', text: content.replace('line', 'lie') },
          validTime: new Date(0),
        },
      ]);
      const report = await verifySession((await reviewer()).store, session.id);
      // The earlier read is unchanged; the present document does not match its name.
      expect(report).toMatchObject({ ok: false, contexts: { total: 1, equal: 1 } });
      expect(report.parts.damages).toEqual([{ part: chunk, what: 'damaged', of: expect.any(String) }]);
    } finally {
      await xtdb.execute([
        { op: 'put', doc: { 'xt/id': chunk, type: 'chunk', text: content }, validTime: new Date(0) },
      ]);
      await xtdb.close();
    }
    expect((await verifySession((await reviewer()).store, session.id)).ok).toBe(true);
  });

  test('cannot be proved once a part is missing, and the result names the part', async () => {
    const client = await open();
    const session = await client.openSession();
    const { callId } = await read(client, session, 'a.ts', `const a = 1;${' '.repeat(3_000)}`);
    await session.reportMessage({ role: 'user', text: 'hello' });
    const { record } = await session.assemble({ deliver: 'library' });
    await client.snapshot();
    const [file] = session.state.sets.index.filter((id) => id !== callId);
    const xtdb = openTestClient();
    try {
      await xtdb.execute([
        {
          op: 'put',
          doc: {
            ...(await (await xtdb.db()).entity(stepId(session.id, 2))),
            'xt/id': stepId(session.id, 2),
            seq: 2,
            body: {
              turn: 2,
              at: 1,
              changes: {},
              opens: { rule: 'user-message' },
              message: { role: 'user', text: 'goodbye' },
            },
          },
        },
      ]);
      const rewritten = await verifySession((await reviewer()).store, session.id);
      expect(rewritten.parts.damages).toContainEqual({
        part: stepId(session.id, 2),
        what: 'rewritten',
        of: session.id,
      });
      // At its own basis the context has the original step.
      expect(rewritten.contexts).toMatchObject({ total: 1, equal: 1 });
      await executeForeign('evict', String(file));
      const { contexts, ok } = await verifySession((await reviewer()).store, session.id);
      expect(ok).toBe(false);
      expect(contexts).toMatchObject({
        total: 1,
        equal: 0,
        unequal: [{ step: 2, sha256: record.sha256, section: 'pool' }],
      });
    } finally {
      await xtdb.close();
    }
  });

  describe('among many that are read together', () => {
    /** A session of some turns, each with a new prompt and a context before and after it is set. */
    const recorded = async () => {
      const client = await open();
      const session = await client.openSession();
      for (let turn = 1; turn <= 4; turn++) {
        await session.reportMessage({ role: 'user', text: `turn ${turn} ${'and so on '.repeat(400)}` });
        await read(client, session, `file-${turn % 2}.ts`, `version ${turn}\n`.repeat(500));
        await session.assemble({ deliver: 'library' });
        await client.snapshot();
        await session.setSystemPrompt(`prompt of turn ${turn}`);
        await session.assemble({ deliver: 'library' });
        await client.snapshot();
      }
      return { client, session, proofs: await (await client.snapshot()).assemblies(session.id) };
    };

    test('is read at its own basis, so a text from another basis is reported', async () => {
      const { session, proofs } = await recorded();
      const [before, after] = proofs.slice(-2);
      if (!before?.basis || !after?.basis) throw new Error('both were read at a basis');
      expect(before.basis.txId).toBeLessThan(after.basis.txId);
      expect((await verifySession((await reviewer()).store, session.id)).contexts).toMatchObject({
        total: 8,
        equal: 8,
      });
      const xtdb = openTestClient();
      try {
        // The context shows the newest state of everything; its basis does not.
        const basis = { ...after.basis, txId: before.basis.txId };
        await xtdb.execute([{ op: 'put', doc: toAssemblyPart({ ...after, basis }) }]);
      } finally {
        await xtdb.close();
      }
      const { contexts, ok } = await verifySession((await reviewer()).store, session.id);
      expect(ok).toBe(false);
      expect(contexts).toMatchObject({
        total: 8,
        equal: 7,
        unequal: [{ step: after.step, sha256: after.sha256, cause: 'other-basis', section: 'system' }],
      });
    });

    test('is unchanged after a write into its past and a repeated text', async () => {
      const { session } = await recorded();
      const xtdb = openTestClient();
      try {
        const prompt = await (await xtdb.db()).entity(`system_prompt:${session.id}`);
        const chunk = chunkId(hashText('version 4\n'.repeat(500)));
        const text = await (await xtdb.db()).entity(chunk);
        if (prompt === undefined || text === undefined) throw new Error('both are there');
        await xtdb.execute([
          { op: 'put', doc: prompt, validTime: new Date(0) },
          { op: 'put', doc: text, validTime: new Date(0) },
        ]);
      } finally {
        await xtdb.close();
      }
      expect(await verifySession((await reviewer()).store, session.id)).toMatchObject({
        ok: true,
        contexts: { total: 8, equal: 8 },
      });
    });

    test('is reported damaged if a text is damaged and a step was rewritten', async () => {
      damaged = await ownNode();
      const { session } = await recorded();
      const xtdb = openTestClient({}, damaged.address);
      const message = `turn 2 ${'and so on '.repeat(400)}`;
      const chunk = chunkId(hashText(message));
      try {
        await xtdb.execute([
          { op: 'put', doc: { 'xt/id': chunk, type: 'chunk', text: 'another' }, validTime: new Date(0) },
        ]);
        const { ok, parts } = await verifySession((await reviewer()).store, session.id);
        expect({ ok, damaged: parts.damages.map(({ part }) => part) }).toEqual({
          ok: false,
          damaged: expect.arrayContaining([chunk]),
        });
        await xtdb.execute([
          { op: 'put', doc: { 'xt/id': chunk, type: 'chunk', text: message }, validTime: new Date(0) },
        ]);
        expect((await verifySession((await reviewer()).store, session.id)).ok).toBe(true);
        const id = stepId(session.id, 2);
        const step = await (await xtdb.db()).entity(id);
        const body = { ...(step?.body as object), at: 1 };
        await xtdb.execute([{ op: 'put', doc: { ...step, 'xt/id': id, body } as never }]);
        expect((await verifySession((await reviewer()).store, session.id)).parts.damages).toContainEqual({
          part: id,
          what: 'rewritten',
          of: session.id,
        });
      } finally {
        await xtdb.execute([
          { op: 'put', doc: { 'xt/id': chunk, type: 'chunk', text: message }, validTime: new Date(0) },
        ]);
        await xtdb.close();
      }
    });
  });
});
