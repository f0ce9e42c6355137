import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { AssemblyProof } from '../../src/objects/assembly-proof.js';
import { sessionId } from '../../src/objects/ids.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import type { CapturedCall } from './loop-model.js';
import { killDatabase, palimpsest, shownOf, startNode, versionNoticed, wordsOf } from './loop-project.js';
import { scriptOf } from './loop-script.js';
import { type LoopSetting, loopSetting } from './loop-setting.js';
import { DIALECTS, startLoopedAgent } from './looped-agent.js';
import { areAsRecorded, checkPairs, inactiveOutputs } from './wire-checks.js';

describe.each(['pi', 'opencode'] as const)('%s with contexts of Palimpsest', (harness) => {
  let setting: LoopSetting;
  let client: ContextClient;
  let [session, fork] = ['', ''];
  /** The output of the command line for the running session: its context and its log. */
  let shown: readonly string[] = [];
  /** The model calls of the agent's turns, and the records of the fork, its parent's first. */
  let main: readonly CapturedCall[];
  let proofs: readonly AssemblyProof[];

  beforeAll(async () => {
    setting = await loopSetting();
    const { root, dataDir, model } = setting;
    const agent = await startLoopedAgent(harness, setting.where);
    setting.atEnd(() => agent.kill());
    session = agent.session;
    const look = async (): Promise<void> => {
      shown = await shownOf(dataDir, session);
    };
    const kill = () => killDatabase(dataDir);
    const script = scriptOf(DIALECTS[harness], root, { look, noticed: versionNoticed(dataDir), kill });
    const request = async (name: string): Promise<void> => {
      model.add(script[name] ?? []);
      await agent.prompt(`${name}, please`);
    };
    for (const name of ['reading', 'working', 'trouble']) await request(name);
    await startNode(dataDir);
    await agent.compact();
    await request('compacted');
    await agent.restart();
    await request('resumed');
    await agent.fork();
    await request('forked');
    fork = agent.session;
    await agent.end();

    client = await setting.reader();
    main = model.calls.filter((call) => call.main);
    proofs = await (await client.store.latest()).assemblies(sessionId(fork));
  }, 290_000);

  afterAll(() => setting.close());

  test('makes no model call with its own context', async () => {
    expect(await loopTroubles(setting.dataDir)).toEqual([]);
    expect(setting.model.left).toBe(0);
    expect(main.length).toBeGreaterThan(30);
  });

  test('sends what the records say, byte for byte, in order', async () => {
    const own = await (await client.store.latest()).assemblies(sessionId(session));
    const all = [...own, ...proofs.filter((proof) => proof.session === fork)];
    expect(all.map(({ delivered }) => delivered)).toEqual(main.map(() => harness));
    expect(await areAsRecorded(client, main, all)).toEqual(main.map(() => true));
    // A message of OpenCode includes the results of its calls. On the wire they are separate.
    const apart = harness === 'opencode' ? ['system', 'tool'] : ['system'];
    const said = main.map(({ messages }) => messages.filter(({ role }) => !apart.includes(role)).length);
    expect(all.map(({ handed }) => handed?.messages)).toEqual(said);
  });

  test('can rebuild every context from the database alone', async () => {
    for (const id of [session, fork]) {
      const { contexts, answers, parts } = await verifySession(await client.delivered(), id);
      expect(contexts.unequal).toEqual([]);
      expect(contexts.handedLists).toBe(contexts.total);
      expect([answers.unequal, parts.damages]).toEqual([[], []]);
    }
  });

  test('keeps calls and answers paired and in order', () => {
    for (const call of setting.model.calls) checkPairs(call);
  });

  test('has no text of an inactive result in a request', async () => {
    let looked = 0;
    for (const [i, call] of main.entries()) {
      const own = proofs[i];
      if (own === undefined) continue;
      for (const output of await inactiveOutputs(client, own.session, own.step)) {
        if (!output.startsWith('only in the shell')) continue;
        looked += 1;
        expect(call.raw).not.toContain(output.split('\n', 1)[0]);
      }
    }
    expect(looked).toBeGreaterThan(20);
  });

  test('shows a file changed from outside in its current state', () => {
    expect(main[19]?.raw).toContain('changed from outside');
  });

  test('keeps everything said and done, in the session and in the files', async () => {
    const words = await wordsOf(client, session);
    for (const word of [
      'I have read everything.',
      'It is done.',
      'Done after the failure.',
      'After the compaction.',
      'Resumed.',
    ]) {
      expect(words.filter((text) => text === word)).toEqual([word]);
    }
    const { state } = await client.openSession({ id: session });
    expect(state.sets.index.filter((id) => state.isToolResult(id))).toHaveLength(20 + 9 + 3 + 1 + 3);
    expect(await readFile(join(setting.root, 'src', 'f2.txt'), 'utf8')).toContain('line seven');
    expect(state.marks.flatMap(({ event }) => event?.kind ?? [])).toContain('compacted');
  });

  test('recognises a fork by its name or by its content, with one more turn', async () => {
    const [parent, child] = [await client.openSession({ id: session }), await client.openSession({ id: fork })];
    expect(child.state.marks.flatMap(({ event }) => event ?? [])).toContainEqual(
      expect.objectContaining({ kind: 'forked', detail: session }),
    );
    expect(child.state.turns.length).toBe(parent.state.turns.length + 1);
  });

  test('lets the command line show its session while it runs', () => {
    const [context = '', log = ''] = shown;
    for (const text of [context, log]) expect(text).toContain('working, please');
    // The last result before that call is active, and nothing that came later is shown.
    expect(context).toContain('only in the shell 1, line 40 of 40');
    for (const text of [context, log]) expect(text).not.toContain('It is done.');
  });

  test('lets the command line show the same session afterwards', async () => {
    const { dataDir } = setting;
    expect(await palimpsest(dataDir, 'context', session, '--assemble')).toContain('user: resumed, please');
    expect(await palimpsest(dataDir, 'log', session)).toContain('resumed, please');
  });
});
