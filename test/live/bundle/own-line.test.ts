import { randomUUID } from 'node:crypto';
import { readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { importBundle } from '../../../src/bundle/import-bundle.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { type SessionId, sessionObjectId } from '../../../src/objects/ids.js';
import { askContext, askDiff, askObject, askVersions, askWho } from '../../../src/review/ask/ask.js';
import { requireText } from '../../../src/review/ask/object-view.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { wholeRead } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

describe('imported versions of a file beside local ones', () => {
  const name = `line${randomUUID().slice(0, 8)}`;
  const [first, second, own] = [`${name}-first`, `${name}-second`, `${name}-own`].map((id) => id as SessionId) as [
    SessionId,
    SessionId,
    SessionId,
  ];
  let made: ReviewedSessions;
  let node: OwnNode;
  let xtdb: XtdbClient;
  let there: ObjectStore;
  let client: ContextClient;
  let local: ContextSession;
  let files: Awaited<ReturnType<typeof temporaryRoot>>;
  let before: string;

  const timeline = () => Timeline.open(there);
  const textOf = async (session?: string, at?: string) => {
    const view = await askObject(await timeline(), { object: made.file, session, at });
    return { text: (await requireText(view)).text, ...view.line, number: view.number };
  };
  const write = async (session: SessionId, file: string, store = there, upto?: number) => {
    const path = join(files.root, file);
    await exportBundle(await Timeline.open(store), { session, file: path, upto });
    return { path, bytes: await readFile(path) };
  };
  const take = (path: string) => importBundle(there, path, { clientDir: node.dataDir });
  const verified = async (session: SessionId) => {
    const { ok, contexts, answers, parts } = await verifySession(there, session);
    expect({ unequal: contexts.unequal, answers: answers.unequal, damages: parts.damages, ok }).toEqual({
      unequal: [],
      answers: [],
      damages: [],
      ok: true,
    });
    return contexts.equal;
  };

  beforeAll(async () => {
    [made, node, files] = await Promise.all([reviewedSessions(name), ownNode(), temporaryRoot()]);
    xtdb = new XtdbClient(node.address);
    there = new ObjectStore(xtdb);
    client = await ContextClient.create({
      address: node.address,
      roots: [made.root],
      cwd: made.root,
      filesystemId: made.client.files.access.mounts.localFilesystemId,
    });
    local = await client.openSession({ id: own });
    await local.reportMessage({ role: 'user', text: 'Read a.ts' });
    await writeFile(join(made.root, 'a.ts'), 'here\n');
    // Older than every imported version.
    const day = Math.floor(Date.now() / 1_000) - 86_400;
    await utimes(join(made.root, 'a.ts'), day, day);
    const readings = [await wholeRead(client, 'a.ts')];
    const report = {
      tool: 'read',
      args: { path: 'a.ts' },
      status: 'ok',
      content: 'here\n',
      answer: () => 'here\n',
      readings,
    } as const;
    await (await local.recordCall(report)).applied;
    before = (await local.assemble({ deliver: 'library' })).text;
    await client.delivered();
  });
  afterAll(async () => {
    await client.close();
    await there.close();
    await xtdb.close();
    await Promise.all([made.close(), node.stop(), files.remove()]);
  });

  test('are found through the imported session, and are current for no other session', async () => {
    const bundle = await write(first, 'first.bundle', made.client.store);
    expect(await take(bundle.path)).toMatchObject({ isNew: true });
    expect(await textOf()).toEqual({ text: 'here\n', session: null, others: [first], number: 1 });
    expect(await textOf(first)).toEqual({ text: 'three\nshared\n', session: first, others: [], number: 3 });
    expect(await textOf(first, 'turn:1')).toMatchObject({ text: 'one\nshared\n', session: first });
    expect((await askVersions(await timeline(), { object: made.file })).versions).toHaveLength(1);
    expect((await askVersions(await timeline(), { object: made.file, session: first })).versions).toHaveLength(3);
    // Even a read as of an hour ago does not return the imported session's version as this
    // database's.
    expect(await textOf(undefined, new Date(Date.now() - 60_000).toISOString())).toMatchObject({
      text: 'here\n',
      session: null,
    });

    expect((await local.assemble({ deliver: 'library' })).text).toBe(before);
    const fresh = await client.openSession({ id: `${name}-fresh` });
    expect((await fresh.assemble()).text).not.toContain('shared');
    await client.closeSession(fresh);
    await client.delivered();
    expect(await verified(own)).toBe(1);
  });

  test('prove the imported session and travel with it to another database, byte for byte', async () => {
    expect(await verified(first)).toBe(1);
    expect((await askContext(await timeline(), `${first}@turn:2`, {})).text).toBe(made.handedOut);
    const { kind, diff } = await askDiff(await timeline(), {
      name: made.file,
      session: first,
      range: 'turn:1..turn:2',
    });
    expect([kind, JSON.stringify(diff)]).toEqual(['object', expect.stringContaining('two')]);
    const { sightings } = await askWho(await timeline(), { object: made.file });
    expect(sightings.map(({ session, versions }) => [session, versions.length]).sort()).toEqual([
      [first, 2],
      [own, 1],
    ]);
    const exported = await write(first, 'origin.bundle', made.client.store);
    expect((await write(first, 'back.bundle')).bytes.equals(exported.bytes)).toBe(true);
    expect(await take(exported.path)).toMatchObject({ isNew: false });
  });

  test('stay separate from those of a second import, in either order', async () => {
    const bundle = await write(second, 'second.bundle', made.client.store);
    expect(await take(bundle.path)).toMatchObject({ isNew: true });
    expect(await textOf()).toMatchObject({ text: 'here\n', session: null, others: [first, second] });
    expect(await textOf(second)).toMatchObject({ text: 'three\nshared\n', session: second, others: [first] });
    expect(await textOf(first)).toMatchObject({ session: first, others: [second] });
    expect(await textOf(first, 'turn:2')).toMatchObject({ text: 'two\nshared\n', session: first });
    for (const session of [first, second, own]) await verified(session);
    expect((await write(second, 'second-back.bundle')).bytes.equals(bundle.bytes)).toBe(true);
  });

  test('end when the session continues here and then sees the files of this database', async () => {
    const steps = (await (await there.latest()).steps(first)).length;
    const session = await client.openSession({ id: first });
    await session.reportMessage({ role: 'user', text: 'Go on here' });
    await (
      await session.recordCall({
        tool: 'activate',
        args: { ids: ['a.ts'] },
        status: 'ok',
        content: 'done',
        answer: () => 'done',
        plan: await session.planVerb('activate', [made.file]),
      })
    ).applied;
    const { text } = await session.assemble({ deliver: 'library' });
    expect(text).toContain(`ACTIVE_CONTENT id=${made.file}\nhere\n`);
    await client.closeSession(session);
    await client.delivered();
    expect(await verified(first)).toBe(2);
    expect(await textOf(first, 'turn:2')).toMatchObject({ text: 'two\nshared\n', session: first });
    expect(await textOf(first)).toMatchObject({ text: 'here\n', session: null });
    await expect(write(first, 'grown.bundle')).rejects.toMatchObject({
      code: 'two-lines',
      message: expect.stringContaining(`--as-of step:${steps}`),
    });
    const exported = await write(first, 'imported.bundle', there, steps);
    expect(exported.bytes.equals((await write(first, 'first-again.bundle', made.client.store)).bytes)).toBe(true);
    expect(await take(exported.path)).toMatchObject({ isNew: false });
  });

  test('are not mixed with another bundle of the same session; the refusal describes that bundle', async () => {
    const open = await made.client.openSession({ id: second });
    await open.reportMessage({ role: 'user', text: 'More' });
    await made.client.closeSession(open);
    await made.client.delivered();
    const later = await write(second, 'later.bundle', made.client.store);
    const steps = (await (await there.latest()).heads([sessionObjectId(second)])).get(sessionObjectId(second))?.marks
      .upto;
    await expect(take(later.path)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(
        new RegExp(
          `holds session ${second} already, up to step ${steps}, ` +
            'and the bundle is a later state of the session, up to step',
        ),
      ),
    });
    expect(await textOf()).toMatchObject({ text: 'here\n' });
  });
});
