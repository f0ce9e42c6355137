import { cpSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CallReport, RecordedCall, ReportedMention } from '../../../src/client/session/call-report.js';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { canonicalPath, type ObjectId } from '../../../src/objects/ids.js';
import { mentions, openClient, wholeRead } from '../../support/context.js';
import { LateAnswers } from '../../support/late-answers.js';
import { callReport as call } from '../../support/tracked-project.js';

describe('pending steps of a session', () => {
  let root: string;
  let proxy: LateAnswers;
  const clients: ContextClient[] = [];

  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    // Steps of one millisecond would not share a transaction.
    let last = 0;
    const clock = (): number => {
      last = Math.max(Date.now(), last + 1);
      return last;
    };
    const client = await openClient(root, {
      address: proxy.address,
      track: false,
      dataDir: join(root, 'data'),
      clock,
      ...options,
    });
    clients.push(client);
    return client;
  };
  /**
   * Records a call until it keeps its given id. A database that does not answer in time makes it
   * use a different id.
   */
  const underGivenId = async (
    session: ContextSession,
    report: Partial<CallReport>,
  ): Promise<readonly RecordedCall[]> => {
    const calls: RecordedCall[] = [];
    while (calls.at(-1)?.callId !== report.callId) calls.push(await session.recordCall(call(report)));
    return calls;
  };
  const txIds = async (calls: readonly RecordedCall[]) => {
    const applied = await Promise.all(calls.map((one) => one.applied));
    return applied.map(({ txId }) => txId);
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-together-')));
    proxy = await LateAnswers.open(root);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });

  test('share one transaction up to a step that changes a known file; each has its own knowledge [0004]', async () => {
    const client = await open();
    const session = await client.openSession();
    const read = async (path: string) =>
      session.recordCall(call({ readings: [await wholeRead(client, path)], content: path }));
    const past = new Date(Date.now() - 60_000);
    await writeFile(join(root, 'a.ts'), 'first');
    await writeFile(join(root, 'b.ts'), 'other');
    await utimes(join(root, 'a.ts'), past, past);
    await client.delivered();
    const held = proxy.holdNext();
    const steps = [await session.recordCall(call({ content: 'one' }))];
    await held.caught;
    steps.push(await read('a.ts'), await read('b.ts'), await read('a.ts'));
    await writeFile(join(root, 'a.ts'), 'second');
    // The version is older than the steps that did not see it.
    await utimes(join(root, 'a.ts'), new Date(past.getTime() + 1_000), new Date(past.getTime() + 1_000));
    steps.push(
      await session.recordCall(call({ content: 'five' })),
      await read('a.ts'),
      await session.recordCall(call({ content: 'seven' })),
    );
    held.release();
    const [one = 0, ...others] = (await txIds(steps)).map(Number);
    const [together = 0, , , , changed = 0] = others;
    expect([one < together, together < changed]).toEqual([true, true]);
    expect(others).toEqual([together, together, together, together, changed, changed]);
    const outcomes = await Promise.all(steps.map(async ({ applied }) => [...(await applied).outcomes.values()]));
    expect(outcomes).toEqual([[], ['created'], ['created'], ['unchanged'], [], ['updated'], []]);

    const timeline = await Timeline.open(client.store);
    const id = [...((await steps[1]?.applied)?.outcomes.keys() ?? [])][0] as ObjectId;
    const at = async (seq: number) => {
      const { snapshot } = await timeline.find({ moment: { kind: 'step', seq } }, session.id);
      return [(await snapshot.steps(session.id)).length, (await snapshot.get(id))?.version.content];
    };
    expect(await Promise.all([2, 3, 4, 5, 6, 7].map(at))).toEqual([
      [2, 'first'],
      [3, 'first'],
      [4, 'first'],
      [5, 'first'],
      [6, 'second'],
      [7, 'second'],
    ]);
    // The process's knowledge equals the database.
    const context = await session.assemble({ optimistic: true });
    expect(context.text).toBe((await session.assemble()).text);
  });

  test('go one by one after a refusal: earlier ones are stored, the refused and later ones are forked', async () => {
    const [client, other] = [await open(), await open({ dataDir: join(root, 'other') })];
    const [session, theirs] = [await client.openSession(), await other.openSession()];
    await Promise.all([client.delivered(), other.delivered()]);
    const callId = `taken-${session.id}`;
    const held = proxy.holdNext();
    const first = await session.recordCall(call({ content: 'one' }));
    await held.caught;
    const second = await session.recordCall(call({ content: 'two' }));
    const third = await underGivenId(session, { content: 'three', callId });
    const fourth = await session.recordCall(call({ content: 'four' }));
    await txIds(await underGivenId(theirs, { content: 'theirs', callId }));
    held.release();
    const steps = [first, second, ...third, fourth];
    const refused = steps.length - 2;
    const ends = await Promise.allSettled(steps.map(({ applied }) => applied));
    expect(ends.map(({ status }) => status)).toEqual(steps.map((_, i) => (i < refused ? 'fulfilled' : 'rejected')));
    const reader = await open({ dataDir: join(root, 'reader') });
    const snapshot = await reader.store.now();
    expect((await snapshot.steps(session.id)).length).toBe(refused);
    const fork = (await snapshot.sessions()).find(({ parent }) => parent?.session === session.id);
    expect((await snapshot.steps(fork?.id ?? session.id)).length).toBe(steps.length);
  });

  test('make no transaction much larger than that of one step, by text or by number of files', async () => {
    const client = await open();
    const session = await client.openSession();
    await writeFile(join(root, 'a.ts'), 'text');
    await client.delivered();
    const held = proxy.holdNext();
    const steps = [await session.recordCall(call({ content: 'one' }))];
    await held.caught;
    for (const letter of ['a', 'b', 'c'])
      await session.reportMessage({ role: 'assistant', text: letter.repeat(900_000) });
    const [named] = await mentions(client, ['a.ts']);
    if (named === undefined) throw new Error('a file that is there was not named');
    const listing = (folder: string): readonly ReportedMention[] =>
      Array.from({ length: 1_200 }, (_, i) => ({
        ...named,
        source: { ...named.source, path: canonicalPath(join(root, folder, `${i}.ts`)) },
      }));
    for (const folder of ['x', 'y'])
      steps.push(await session.recordCall(call({ tool: 'ls', mentions: listing(folder) })));
    held.release();
    await txIds(steps);
    const times = await (await client.store.now()).stepTimes(session.id, [2, 3, 4, 5, 6]);
    const [first = 0, second = 0, third = 0, listed = 0, last = 0] = [2, 3, 4, 5, 6].map((seq) => times.get(seq)?.txId);
    expect([second === first, third > first, listed === third, last > listed]).toEqual([true, true, true, true]);
  });

  test('share a transaction also after their process died, behind those that it had delivered', async () => {
    const client = await open();
    const session = await client.openSession();
    const steps: RecordedCall[] = [];
    const record = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n++) steps.push(await session.recordCall(call({ content: `${steps.length}` })));
    };
    await record(2);
    await txIds(steps);
    const delivered = (await client.store.now()).stepTimes(session.id, [1, 2]);
    const held = proxy.holdNext();
    await record(1);
    await held.caught;
    await record(4);
    // As a kill leaves it: the journal marks no step as delivered.
    cpSync(join(root, 'data', 'journal'), join(root, 'dead', 'journal'), { recursive: true });
    for (const name of await readdir(join(root, 'dead', 'journal')))
      if (name.endsWith('.lock')) await truncate(join(root, 'dead', 'journal', name));
    const adopting = await openClient(root, { track: false, dataDir: join(root, 'dead') });
    clients.push(adopting);
    const times = await (await adopting.snapshot()).stepTimes(session.id, [1, 2, 3, 4, 5, 6, 7]);
    const ids = [...times.values()].map(({ txId }) => txId);
    expect(ids).toHaveLength(7);
    expect(ids.slice(0, 2)).toEqual([...(await delivered).values()].map(({ txId }) => txId));
    expect(new Set(ids.slice(3)).size).toBe(1);
    held.release();
    await txIds(steps);
    expect((await (await client.store.now()).steps(session.id)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  test('are looked up and written once if the receipt of their transaction is lost', async () => {
    const client = await open();
    const session = await client.openSession();
    await writeFile(join(root, 'a.ts'), 'text');
    await client.delivered();
    const held = proxy.holdNext();
    const steps = [await session.recordCall(call({ content: 'one' }))];
    await held.caught;
    steps.push(await session.recordCall(call({ readings: [await wholeRead(client, 'a.ts')], content: 'text' })));
    for (const content of ['three', 'four']) steps.push(await session.recordCall(call({ content })));
    const lost = proxy.holdNext('receipt');
    held.release();
    await lost.caught;
    await proxy.close();
    proxy = await LateAnswers.open(root);
    lost.release();
    const [, ...others] = await txIds(steps);
    expect(others).toEqual([undefined, undefined, undefined]);
    expect((await (await client.store.now()).steps(session.id)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    expect((await session.assemble({ optimistic: true })).text).toBe((await session.assemble()).text);
  });
});
