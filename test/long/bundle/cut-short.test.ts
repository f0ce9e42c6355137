import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { finishImport, importBundle } from '../../../src/bundle/import-bundle.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { listSessions } from '../../../src/client/session/open-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { type SessionId, sessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { openClient, wholeRead } from '../../support/context.js';
import { cliPath, temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { until } from '../../support/until.js';

describe('an interrupted import', () => {
  const name = `cut${randomUUID().slice(0, 8)}`;
  const [parent, fork, other] = [sessionId(`${name}-parent`), sessionId(`${name}-fork`), sessionId(`${name}-other`)];
  let client: ContextClient;
  let node: OwnNode;
  let xtdb: XtdbClient;
  let there: ObjectStore;
  let files: Awaited<ReturnType<typeof temporaryRoot>>;
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;

  const write = async (store: ObjectStore, session: SessionId, file: string) => {
    const path = join(files.root, file);
    const { manifest } = await exportBundle(await Timeline.open(store), { session, file: path });
    return { path, manifest, bytes: await readFile(path) };
  };
  const whole = async (session: SessionId) => {
    const { ok, contexts } = await verifySession(there, session);
    expect({ ok, unequal: contexts.unequal }).toEqual({ ok: true, unequal: [] });
    return contexts.equal;
  };
  const listed = async () => (await listSessions(await there.latest(), [])).map(({ id }) => id);
  /** Returns the ids of all documents and texts in a bundle. */
  const idsIn = (bytes: Buffer) => {
    const lines = gunzipSync(bytes)
      .toString()
      .trimEnd()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as {
            readonly put?: { readonly 'xt/id': string };
            readonly text?: { readonly 'xt/id': string };
          },
      );
    return {
      named: lines.flatMap(({ put }) => put?.['xt/id'] ?? []),
      texts: lines.flatMap(({ text }) => text?.['xt/id'] ?? []),
    };
  };
  const cutAt = (path: string, stop: number) =>
    importBundle(there, path, {
      clientDir: node.dataDir,
      onProgress: (done) => {
        if (done === stop) throw new Error('cut short here');
      },
    });
  const stopAt = (stop: number) => (done: number) => {
    if (done === stop) throw new Error('killed here');
  };

  beforeAll(async () => {
    [files, folder, node] = await Promise.all([temporaryRoot(), temporaryRoot(), ownNode()]);
    xtdb = new XtdbClient(node.address);
    there = new ObjectStore(xtdb);
    client = await openClient(folder.root);
    const read = async (id: SessionId, text: string, isNew = true) => {
      const session = isNew ? await client.openSession({ id }) : await client.forkSession(parent, { id });
      await session.reportMessage({ role: 'user', text: `Read it for ${id}` });
      await writeFile(join(folder.root, 'shared.txt'), text);
      const readings = [await wholeRead(client, 'shared.txt')];
      const report = {
        tool: 'read',
        args: { path: 'shared.txt' },
        status: 'ok',
        content: text,
        answer: () => text,
        readings,
      } as const;
      await (await session.recordCall(report)).applied;
      await session.assemble({ deliver: 'library' });
      await client.closeSession(session);
      await client.delivered();
    };
    await read(parent, 'one\n');
    await read(fork, `${randomUUID()}\n`.repeat(200_000), false);
    await read(other, 'three\n');
  });
  afterAll(async () => {
    await client.close();
    await there.close();
    await xtdb.close();
    await Promise.all([node.stop(), files.remove(), folder.remove()]);
  });

  test('leaves nothing visible and nothing to finish before all is stored, even if it is killed', async () => {
    const { path, bytes } = await write(client.store, fork, 'killed.bundle');
    const { named, texts } = idsIn(bytes);
    const child = spawn(process.execPath, [cliPath, 'import', path, '--data', node.dataDir, '--json'], {
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await until(
      async () => (await (await there.latest()).existing(texts)).length,
      (count) => count > 0,
    );
    child.kill('SIGKILL');
    await ended;
    const now = await there.latest();
    // The kill came at some point of the import, mostly while its first texts were written.
    if ((await now.documents.importOf(fork)) === undefined) {
      expect(await now.existing(named)).toEqual([]);
      await expect(finishImport(there, fork, { clientDir: node.dataDir })).rejects.toMatchObject({
        code: 'nothing-to-finish',
      });
    } else await finishImport(there, fork, { clientDir: node.dataDir });
    expect(await listed()).not.toContain(`${name}-none`);
  });

  test('is finished later without its file, even if finishing is killed and other sessions share files', async () => {
    const bundle = await write(client.store, fork, 'fork.bundle');
    const shared = await write(client.store, other, 'other.bundle');
    const { transactions } = bundle.manifest;
    const own = await ownNode();
    const ownXtdb = new XtdbClient(own.address);
    const [before, beforeNode] = [there, node];
    [there, node] = [new ObjectStore(ownXtdb), own];
    try {
      const clientDir = node.dataDir;
      await expect(cutAt(bundle.path, 1)).rejects.toThrow('cut short here');
      const copy = bundle.bytes;
      await rm(bundle.path);
      expect(await listed()).toEqual([]);
      await expect(verifySession(there, fork)).rejects.toMatchObject({ code: 'unknown-session' });
      const second = await openClient(folder.root, { address: node.address });
      await expect(second.openSession({ id: parent })).rejects.toMatchObject({
        message: expect.stringContaining(`import --finish ${parent}`),
      });
      await second.close();
      for (const stop of [2, transactions - 1]) {
        await expect(finishImport(there, fork, { clientDir, onProgress: stopAt(stop) })).rejects.toThrow('killed here');
        expect(await listed()).toEqual([]);
      }
      // Finishing also works by the name of the parent session.
      expect(await finishImport(there, parent, { clientDir })).toMatchObject({
        session: fork,
        sessions: [parent, fork],
        transactions,
      });
      await expect(finishImport(there, fork, { clientDir })).rejects.toMatchObject({
        code: 'nothing-to-finish',
        message: expect.stringContaining('is complete'),
      });
      expect((await listed()).sort()).toEqual([fork, parent]);
      expect(await whole(fork)).toBe(2);
      expect((await there.latest()).documents.importOf(fork)).resolves.not.toHaveProperty('staged');
      expect((await write(there, fork, 'fork-back.bundle')).bytes.equals(copy)).toBe(true);
      expect(await importBundle(there, shared.path, { clientDir })).toMatchObject({ isNew: true });
      expect(await whole(other)).toBe(1);
      expect((await write(there, other, 'other-back.bundle')).bytes.equals(shared.bytes)).toBe(true);
    } finally {
      await there.close();
      await ownXtdb.close();
      await own.stop();
      [there, node] = [before, beforeNode];
    }
  });
});
