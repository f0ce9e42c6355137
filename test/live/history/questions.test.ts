import { randomUUID } from 'node:crypto';
import { utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { listSessions } from '../../../src/client/session/open-session.js';
import { HistoryError } from '../../../src/history/rebuild/history-error.js';
import { PastContexts } from '../../../src/history/rebuild/past-context.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { AssemblyProof } from '../../../src/objects/assembly-proof.js';
import { canonicalPath, filesystemId, type ObjectId } from '../../../src/objects/ids.js';
import { type FilesystemSource, filesystemSource } from '../../../src/objects/source.js';
import { fileStub } from '../../../src/objects/versions.js';
import {
  askContext,
  askDiff,
  askObject,
  askQuery,
  askTurns,
  askVersions,
  askWho,
} from '../../../src/review/ask/ask.js';
import { requireText } from '../../../src/review/ask/object-view.js';
import { StoreSnapshot } from '../../../src/store/store-snapshot.js';
import { wholeRead } from '../../support/context.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

describe('history queries', () => {
  const name = `ask${randomUUID().slice(0, 8)}`;
  const first = `${name}-first`;
  let made: ReviewedSessions;
  let timeline: Timeline;

  const open = async (): Promise<Timeline> => Timeline.open(await made.client.delivered(), made.client.files);
  const codeOf = async (work: Promise<unknown>): Promise<string> => {
    try {
      await work;
    } catch (error) {
      if (error instanceof HistoryError) return error.code;
      throw error;
    }
    return 'none';
  };
  const textAt = async (object: string, at: string, session?: string): Promise<string> =>
    (await requireText(await askObject(timeline, { object, at, session }))).text;

  beforeAll(async () => {
    made = await reviewedSessions(name);
    timeline = await open();
  });
  afterAll(() => made.close());

  test('treat the shared turns of a fork like its parent’s, and the rest as its own (decision F2)', async () => {
    const { turns } = await askTurns(timeline, { session: first });
    const at = turns.find(({ turn }) => turn === 2)?.lastStep ?? 0;
    const fork = await made.client.forkSession(first, { at, id: `${name}-fork` });
    await fork.reportMessage({ role: 'user', text: 'Go another way' });
    await writeFile(join(made.root, 'own.ts'), 'own\n');
    const { applied } = await fork.recordCall({
      tool: 'read',
      args: { path: 'own.ts' },
      status: 'ok',
      content: 'own\n',
      readings: [await wholeRead(made.client, 'own.ts')],
      answer: () => 'own',
    });
    await applied;
    await made.client.closeSession(fork);
    const now = await open();

    const log = (await askTurns(now, { session: fork.id })).turns;
    expect(log.map(({ turn }) => turn)).toEqual([3, 2, 1]);
    expect(log.map(({ known }) => known?.txId)).toEqual([
      expect.any(Number),
      turns[1]?.known?.txId,
      turns[2]?.known?.txId,
    ]);
    expect(log[0]?.messages.map(({ text }) => text)).toEqual(['Go another way']);
    // The log lists turns that sessions share once. A fork has no turn before its creation.
    const sessionsAt = async (validTime: string | undefined): Promise<readonly string[]> =>
      (await askTurns(now, { limit: 10_000, validTime })).turns
        .map(({ session, turn }) => `${session} ${turn}`)
        .filter((one) => one.startsWith(name));
    const before = turns[0]?.to.toISOString();
    expect((await sessionsAt(undefined)).filter((one) => one.startsWith(fork.id))).toEqual([`${fork.id} 3`]);
    expect((await sessionsAt(before)).filter((one) => one.startsWith(fork.id))).toEqual([]);
    const shared = await askContext(now, `${fork.id}@turn:1`, { assemble: true });
    expect(shared.text).toBe((await askContext(now, `${first}@turn:1`, { assemble: true })).text);
    expect((await askContext(now, `${fork.id}@turn:2`, {})).text).toBe(made.handedOut);
    expect((await askContext(now, `${fork.id}@turn:3`, { assemble: true })).text).toContain('own\n');
    const { sightings } = await askWho(now, { object: made.file });
    expect(sightings.map(({ session }) => session).sort()).toEqual([`${name}-first`, `${name}-fork`, `${name}-second`]);
    expect(await askDiff(now, { name: fork.id, range: '2..3' })).toMatchObject({
      kind: 'session',
      diff: { sets: { pinned: { removed: [] } } },
    });
  });

  test('show no later step in a log of a moment, on either clock', async () => {
    const { turns } = await askTurns(timeline, { session: first });
    const steps = async (question: Parameters<typeof askTurns>[1]): Promise<readonly number[]> => {
      const { turns: shown } = await askTurns(timeline, { session: first, ...question });
      return shown
        .flatMap(({ calls, messages }) => [...calls, ...messages].map(({ seq }) => seq))
        .sort((a, b) => a - b);
    };
    const upTo = (seq: number): readonly number[] => Array.from({ length: seq }, (_, i) => i + 1);
    const end = turns[0]?.lastStep ?? 0;
    expect(await steps({})).toEqual(upTo(end));
    const whole = await timeline.steps(made.first.id);
    const times = await timeline.present.stepTimes(made.first.id, upTo(end));
    for (const seq of upTo(end)) {
      expect(await steps({ at: `step:${seq}` })).toEqual(upTo(seq));
      expect(await steps({ tx: String(times.get(seq)?.txId) })).toEqual(upTo(seq));
      const at = whole[seq - 1]?.at ?? 0;
      expect(await steps({ validTime: new Date(at).toISOString() })).toEqual(
        upTo(whole.filter((step) => step.at <= at).length),
      );
    }
    const { turns: all } = await askTurns(timeline, { tx: String(times.get(2)?.txId) });
    expect(all.filter(({ session }) => session === made.second.id)).toEqual([]);
  });

  test('compare a session of one turn with its beginning', async () => {
    const asked = await askDiff(timeline, { name: `${name}-second` });
    expect(asked).toMatchObject({
      kind: 'session',
      diff: { sets: { active: { added: expect.arrayContaining([made.file]) } } },
    });
  });

  test('return the right version at every boundary between two versions, on either clock', async () => {
    const { versions } = await askVersions(timeline, { object: made.file });
    const texts = ['three', 'two', 'one'].map((word) => `${word}\nshared\n`);
    for (const [i, { validTime, txId }] of versions.entries()) {
      const [own = '', before] = texts.slice(i);
      expect(await textAt(made.file, validTime.toISOString())).toBe(own);
      expect(await textAt(made.file, `tx:${txId}`)).toBe(own);
      const justBefore = new Date(validTime.getTime() - 1).toISOString();
      if (before === undefined) expect(await codeOf(textAt(made.file, justBefore))).toBe('not-yet');
      else expect(await textAt(made.file, justBefore)).toBe(before);
      if (before === undefined) expect(await codeOf(textAt(made.file, `tx:${txId - 1}`))).toBe('not-yet');
      else expect(await textAt(made.file, `tx:${txId - 1}`)).toBe(before);
    }
  });

  test('map a time to the earlier transaction of two, the last after the end, none before the first', async () => {
    const { versions } = await askVersions(timeline, { object: made.file });
    const [third, second] = versions;
    const known = async (tx: string) => askObject(timeline, { object: made.file, tx });
    expect((await known(third?.txTime.toISOString() ?? '')).times.txId).toBe(third?.txId);
    expect((await known(new Date((third?.txTime.getTime() ?? 0) - 1).toISOString())).times.txId).toBe(second?.txId);
    expect((await known('2999-01-01')).times.txId).toBe(third?.txId);
    expect(await codeOf(known('2001-01-01'))).toBe('not-yet');
  });

  test('return the same from one timeline on every call, despite later writes', async () => {
    const pinned = await open();
    const before = await askContext(pinned, `${name}-second`, { assemble: true });
    const again = await made.client.openSession({ id: `${name}-second` });
    const { applied } = await again.recordCall({
      tool: 'bash',
      args: {},
      status: 'ok',
      content: 'later',
      answer: () => 'later',
    });
    await applied;
    expect((await askContext(pinned, `${name}-second`, { assemble: true })).sha256).toBe(before.sha256);
    expect((await askContext(await open(), `${name}-second`, { assemble: true })).text).toContain('later');
    await made.client.closeSession(again);
  });

  test('resolve ids, prefixes, paths and their ends, with exact matches first', async () => {
    const id = async (object: string, session?: string) =>
      (await askObject(timeline, { object, session })).version['xt/id'];
    expect(await id(made.file.slice(0, 10))).toBe(made.file);
    expect(await id(join(made.root, 'a.ts'))).toBe(made.file);
    expect(await id('a.ts', first)).toBe(made.file);
    expect(await id('./a.ts', first.slice(0, -2))).toBe(made.file);
    expect(await id(first)).toBe(`session:${first}`);
    expect(await id(`chat:${first}`)).toBe(`chat:${first}`);
    expect(await codeOf(id(`${first}:`))).toBe('ambiguous');
    expect(await codeOf(id('a'.repeat(64)))).toBe('unknown-object');
    expect(await codeOf(id('zzz'))).toBe('unknown-object');
    expect(await codeOf(id('\ud83d'))).toBe('unknown-object');
    expect(await codeOf(askWho(timeline, { object: first }))).toBe('wrong-kind');
    await expect(id('a.tss', first)).rejects.toThrow(
      `did you mean "${join(made.root, 'a.ts')}"? Otherwise name it by its id`,
    );
  });

  test('find a file of this machine by its path alone, and read all paths once for any other name', async () => {
    const paths = jest.spyOn(StoreSnapshot.prototype, 'sources');
    try {
      const now = await open();
      const id = async (object: string, session?: string) =>
        (await askObject(now, { object, session })).version['xt/id'];
      for (const path of [join(made.root, 'a.ts'), 'a.ts', './a.ts', `${made.root}/../${basename(made.root)}/a.ts`])
        expect([await id(path), await id(path, first)]).toEqual([made.file, made.file]);
      expect(paths).toHaveBeenCalledTimes(0);
      expect(await id(`${basename(made.root)}/a.ts`)).toBe(made.file);
      expect(paths).toHaveBeenCalledTimes(1);
      expect(await codeOf(askDiff(now, { name: join(made.root, 'absent.ts') }))).toBe('unknown-object');
      expect(paths).toHaveBeenCalledTimes(2);
    } finally {
      paths.mockRestore();
    }
  });

  test('prefer a file of this machine to one of another at the same path', async () => {
    const path = canonicalPath(join(made.root, 'shared.ts'));
    const put = async (source: FilesystemSource): Promise<ObjectId> => {
      const version = fileStub(source);
      await made.client.store.putMany([{ version }]);
      return version['xt/id'];
    };
    const found = async () => (await askObject(await open(), { object: path })).version['xt/id'];
    const other = await put(filesystemSource(filesystemId('elsewhere'), path));
    expect(await found()).toBe(other);
    const here = await put((await made.client.files.locate(path, { mustExist: false })).source);
    expect(await found()).toBe(here);
    expect(here).not.toBe(other);
  });

  test('rebuild contexts together as one by one, despite later writes, even before their bases', async () => {
    const session = await made.client.openSession({ id: `${name}-changing` });
    const hourAgo = Math.floor(Date.now() / 1_000) - 3_600;
    const read = async (path: string): Promise<void> => {
      const { applied } = await session.recordCall({
        tool: 'read',
        args: { path },
        status: 'ok',
        content: path,
        readings: [await wholeRead(made.client, path)],
        answer: (id) => id,
      });
      await applied;
    };
    for (let turn = 1; turn <= 18; turn++) {
      await session.reportMessage({ role: 'user', text: `turn ${turn}` });
      const path = `changing-${turn % 3}.ts`;
      await writeFile(join(made.root, path), `turn ${turn}\n`.repeat(turn));
      // Every version of the last file is dated before the contexts that showed its predecessor.
      if (turn % 3 === 2) await utimes(join(made.root, path), hourAgo + turn, hourAgo + turn);
      await read(path);
      if (turn === 9) await session.setSystemPrompt('Another prompt.');
      if (turn === 12) {
        const { id } = await made.client.files.locate('changing-0.ts');
        const plan = await session.planVerb('deactivate', [id]);
        await session.recordCall({
          tool: 'deactivate',
          args: {},
          status: 'ok',
          content: '',
          plan,
          answer: (call) => call,
        });
      }
      await session.assemble({ deliver: 'library' });
    }
    const store = await made.client.delivered();
    const records = await (await Timeline.open(store)).records(session.id);
    const together = await new PastContexts(await Timeline.open(store)).ofRecords(records, async (context) => context);
    expect(together.map(({ matches }) => matches)).toEqual(records.map(() => true));
    for (const [i, record] of records.entries())
      expect(together[i]).toEqual(await new PastContexts(await Timeline.open(store)).ofRecord(record));
    // A context that differs from the database is reported, and its neighbours are not.
    const [good, wrong, ...others] = records as readonly [AssemblyProof, AssemblyProof, ...AssemblyProof[]];
    const claimed = [good, { ...wrong, sha256: good.sha256 }, ...others];
    const compared = await new PastContexts(await Timeline.open(store)).ofRecords(
      claimed,
      async ({ matches }) => matches,
    );
    expect(compared).toEqual(claimed.map((_, i) => i !== 1));
  });

  test('list a session with an unfinished turn with all steps and the time of the last', async () => {
    const session = await made.client.openSession({ id: `${name}-cut-off` });
    await session.reportMessage({ role: 'user', text: 'begin' });
    for (let n = 1; n <= 9; n++)
      await session.recordCall({ tool: 'bash', args: { n }, status: 'ok', content: `${n}`, answer: (id) => id });
    const { present } = await open();
    const [head] = (await present.sessions()).filter(({ id }) => id === session.id);
    expect(head?.upto).toBe(1);
    const listed = (await listSessions(present, [])).find(({ id }) => id === session.id);
    expect(listed).toMatchObject({
      turns: 1,
      steps: 10,
      lastActivity: new Date(session.state.lastAt),
      openHere: false,
    });
  });

  test('end an expensive query at its limit, and answer others meanwhile', async () => {
    const cross =
      '{:find [?a ?b ?c ?d] :where [[?a :xt/id] [?b :xt/id] [?c :xt/id] [?d :xt/id]] :order-by [[?d :asc]]}';
    const heavy = codeOf(askQuery(timeline, cross, { timeoutMs: 400 }));
    const light = await askQuery(timeline, '{:find [?n] :in [?e] :where [[?e :char_count ?n]]}', {
      args: `["${made.file}"]`,
    });
    expect(light.answer.rows).toEqual([[13]]);
    expect(await heavy).toBe('query-timeout');
  });
});
