import { randomUUID } from 'node:crypto';

import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { finishImport, importBundle } from '../../../src/bundle/import-bundle.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { createContextClient, stopNode } from '../../../src/index.js';
import { sessionLockOwners } from '../../../src/journal/session-lock.js';
import { ERASURE_LOCK, ERASURES, PENDING_ORDER } from '../../../src/node/erasure-sign.js';
import { type SessionId, sessionId } from '../../../src/objects/ids.js';
import { withNamedLock } from '../../../src/process/lock.js';
import { openClient, wholeRead } from '../../support/context.js';
import { runCli, startCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

/** Enough for an import to take seconds, so that it can be stopped midway. */
const CALLS = 150;

describe('an order beside an import that needs the same text', () => {
  let folder: string;
  let dataDir: string;
  let opened: Awaited<ReturnType<typeof createContextClient>>;
  const shared = `${randomUUID()} is in a file of both sessions\n`.repeat(200);
  const bundles = new Map<string, { readonly session: SessionId; readonly path: string }>();
  const json = async (...args: readonly string[]) =>
    JSON.parse((await runCli([...args, '--data', dataDir, '--json'])).stdout);
  const codeOf = async (...args: readonly string[]): Promise<string> => (await json(...args)).error?.code ?? 'done';

  async function recordSession(client: ContextClient, id: string, calls: number): Promise<void> {
    const session = await client.openSession({ id });
    await writeFile(join(folder, `${id}.txt`), shared);
    const readings = [await wholeRead(client, `${id}.txt`)];
    const call = { tool: 'read', args: { path: `${id}.txt` }, status: 'ok' as const, content: shared };
    await session.recordCall({ ...call, readings, answer: () => shared });
    for (let i = 0; i < calls; i++) await session.reportMessage({ role: 'user', text: `${i} of ${id}` });
    await session.assemble({ deliver: 'library' });
    expect(await session.isDelivered(60_000)).toBe(true);
    await session.close();
  }

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-erase-import-')));
    dataDir = join(folder, 'data');
    opened = await createContextClient({ dataDir, roots: [folder], cwd: folder });
    for (const id of ['one', 'two', 'three']) await recordSession(opened.client, id, 1);
    const other = await openClient(folder);
    for (const name of ['running', 'cut', 'late']) {
      const session = sessionId(`${name}-${randomUUID()}`);
      await recordSession(other, session, name === 'running' ? CALLS : 5);
      const path = join(folder, `${name}.bundle`);
      await exportBundle(await Timeline.open(await other.delivered()), { session, file: path, upto: undefined });
      bundles.set(name, { session, path });
    }
    await other.close();
  });
  afterAll(async () => {
    await opened.close();
    await stopNode(dataDir);
    await rm(folder, { recursive: true, force: true });
  });

  const bundle = (name: string) => bundles.get(name) ?? { session: sessionId('none'), path: '' };
  const order = (session: string) => ['erase', '--session', session, '--apply', '--reason', 'asked'];

  test('is refused while the import runs', async () => {
    const { session, path } = bundle('running');
    expect(await codeOf('erase', '--session', 'one', '--plan')).toBe('done');
    const { child, result } = startCli(['import', path, '--data', dataDir, '--json']);
    await until(
      () => sessionLockOwners(dataDir, session),
      (owners) => owners.length > 0,
    );
    child.kill('SIGSTOP');
    expect(await sessionLockOwners(dataDir, session)).toMatchObject([{ what: 'palimpsest import' }]);
    expect((await json(...order('one'))).error).toMatchObject({
      code: 'importing',
      message: expect.stringContaining(`imports session ${session}: nothing was erased`),
    });
    child.kill('SIGCONT');
    expect(JSON.parse((await result).stdout)).toMatchObject({ session, imported: true });
    // The import took the text from the database, so it is needed there now.
    expect(await codeOf(...order('one'))).toBe('done');
    expect(await json('verify', '--all')).toMatchObject({ ok: true });
  });

  test('is refused while an import is interrupted, unless it erases that session', async () => {
    const { session, path } = bundle('cut');
    const { store } = opened.client;
    const cut = importBundle(store, path, {
      clientDir: dataDir,
      onProgress: () => {
        throw new Error('cut short here');
      },
    });
    await expect(cut).rejects.toThrow('cut short here');
    expect((await json('erase', '--session', 'two', '--plan')).error).toMatchObject({
      code: 'importing',
      message: expect.stringContaining(`palimpsest import --finish ${session}`),
    });
    expect(await codeOf('erase', '--text', 'two.txt', '--plan')).toBe('importing');
    // The session has no step yet, but must not count as older than any date.
    expect(await codeOf('erase', '--before', '2020-01-01', '--plan')).toBe('importing');
    expect((await json('disk')).measures).toContainEqual(
      expect.objectContaining({ refused: expect.stringContaining(session) }),
    );
    await finishImport(store, session, { clientDir: dataDir });
    expect(await codeOf('erase', '--session', 'two', '--plan')).toBe('done');
    expect(await codeOf(...order('two'))).toBe('done');
    expect(await json('verify', '--all')).toMatchObject({ ok: true });
  });

  test('makes the import wait, or refuses it if it was interrupted', async () => {
    const { session, path } = bundle('late');
    const { store } = opened.client;
    await mkdir(join(dataDir, ERASURES), { recursive: true });
    let importing: ReturnType<typeof importBundle> | undefined;
    let isImported = false;
    await withNamedLock(join(dataDir, ERASURE_LOCK), { limitMs: 0 }, async () => {
      importing = importBundle(store, path, { clientDir: dataDir });
      importing.then(
        () => {
          isImported = true;
        },
        () => undefined,
      );
      await until(
        () => sessionLockOwners(dataDir, session),
        (owners) => owners.length > 0,
      );
      // A read of the whole database takes longer than the rest of the import would.
      await json('disk');
      expect(isImported).toBe(false);
      await writeFile(join(dataDir, PENDING_ORDER), '{}');
    });
    await expect(importing).rejects.toMatchObject({
      code: 'erasing',
      message: expect.stringContaining('palimpsest erase --resume'),
    });
    await rm(join(dataDir, PENDING_ORDER));
    expect(await importBundle(store, path, { clientDir: dataDir })).toMatchObject({ isNew: true });
    expect(await json('verify', session)).toMatchObject({ ok: true });
  });
});
