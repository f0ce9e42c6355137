import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { AssemblyProof } from '../../src/objects/assembly-proof.js';
import { sessionId } from '../../src/objects/ids.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type CapturedCall, type LoopModel, startLoopModel } from './loop-model.js';
import {
  killDatabase,
  makeProject,
  palimpsest,
  reader,
  shownOf,
  startNode,
  stopUnusedNode,
  versionNoticed,
} from './loop-project.js';
import { scriptOf, type ToolDialect } from './loop-script.js';
import { PiProcess } from './pi-process.js';
import { areAsRecorded, checkPairs, inactiveOutputs } from './wire-checks.js';

const PI: ToolDialect = {
  read: (path) => ({ name: 'read', args: { path } }),
  shell: (command) => ({ name: 'bash', args: { command } }),
  edit: (path, oldText, newText) => ({ name: 'edit', args: { path, edits: [{ oldText, newText }] } }),
};

interface Run {
  readonly model: LoopModel;
  readonly root: string;
  readonly dataDir: string;
  readonly session: string;
  readonly fork: string;
  readonly client: ContextClient;
  /** The output of the command line for the running session: its context and its log. */
  readonly shown: readonly string[];
}

describe('pi with contexts of Palimpsest', () => {
  let run: Run;
  let proofs: readonly AssemblyProof[];
  let main: readonly CapturedCall[];
  const removals: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    const [{ root, remove }, { root: home, remove: removeHome }, { root: dataDir, remove: removeData }] =
      await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    const model = await startLoopModel();
    removals.push(() => model.close(), remove, removeHome, removeData);
    await makeProject(root);
    await startNode(dataDir);
    removals.unshift(() => stopUnusedNode(dataDir));
    const pi = { home, cwd: root, dataDir, model, extension: join(dirname(cliPath), 'pi.js') };
    let session = '';
    let shown: readonly string[] = [];
    const look = async (): Promise<void> => {
      shown = await shownOf(dataDir, session);
    };
    const script = scriptOf(PI, root, { look, noticed: versionNoticed(dataDir), kill: () => killDatabase(dataDir) });

    const first = await PiProcess.start(pi);
    removals.unshift(async () => first.kill());
    const state = await first.command({ type: 'get_state' });
    session = String(state.sessionId);
    for (const name of ['reading', 'working', 'trouble'] as const) {
      model.add(script[name] ?? []);
      await first.prompt(`${name}, please`);
    }
    await startNode(dataDir);
    await first.command({ type: 'compact' });
    model.add(script.compacted ?? []);
    await first.prompt('compacted, please');
    await first.end();

    const second = await PiProcess.start(pi, '--continue');
    removals.unshift(async () => second.kill());
    model.add(script.resumed ?? []);
    await second.prompt('resumed, please');
    await second.end();

    const third = await PiProcess.start(pi, '--fork', String(state.sessionFile));
    removals.unshift(async () => third.kill());
    model.add(script.forked ?? []);
    await third.prompt('forked, please');
    const { sessionId: fork } = await third.command({ type: 'get_state' });
    await third.end();

    const client = await reader(dataDir, root);
    removals.unshift(() => client.close());
    run = { model, root, dataDir, session, fork: String(fork), client, shown };
    main = model.calls.filter((call) => call.main);
    proofs = await (await client.store.latest()).assemblies(sessionId(run.fork));
  }, 280_000);

  afterAll(async () => {
    for (const remove of removals) await remove();
  });

  test('makes no model call with its own context', async () => {
    expect(await loopTroubles(run.dataDir)).toEqual([]);
    expect(run.model.left).toBe(0);
    expect(main.length).toBeGreaterThan(30);
  });

  test('sends what the records say, byte for byte, in order', async () => {
    const own = await (await run.client.store.latest()).assemblies(sessionId(run.session));
    const all = [...own, ...proofs.filter(({ session }) => session === run.fork)];
    expect(all.map(({ delivered }) => delivered)).toEqual(main.map(() => 'pi'));
    expect(await areAsRecorded(run.client, main, all)).toEqual(main.map(() => true));
    for (const [i, { handed }] of all.entries()) expect(handed?.messages).toBe((main[i]?.messages.length ?? 0) - 1);
  });

  test('can rebuild every context from the database alone', async () => {
    for (const id of [run.session, run.fork]) {
      const { contexts, answers, parts } = await verifySession(await run.client.delivered(), id);
      expect(contexts.unequal).toEqual([]);
      expect(contexts.handedLists).toBe(contexts.total);
      expect([answers.unequal, parts.damages]).toEqual([[], []]);
    }
  });

  test('keeps calls and answers paired and in order', () => {
    for (const call of run.model.calls) checkPairs(call);
  });

  test('has no text of an inactive result in a request', async () => {
    let looked = 0;
    for (const [i, call] of main.entries()) {
      const own = proofs[i];
      if (own === undefined) continue;
      for (const output of await inactiveOutputs(run.client, own.session, own.step)) {
        if (!output.startsWith('only in the shell')) continue;
        looked += 1;
        expect(call.raw).not.toContain(output.split('\n', 1)[0]);
      }
    }
    expect(looked).toBeGreaterThan(20);
  });

  test('shows a file changed from outside in its current state', () => {
    const after = main[19];
    expect(after?.raw).toContain('changed from outside');
  });

  test('keeps everything said and done, in the session and in pi’s own file', async () => {
    const session = await run.client.openSession({ id: run.session });
    const words = session.state.turns.flatMap(({ messages }) => messages.map(({ text }) => text));
    for (const word of [
      'I have read everything.',
      'It is done.',
      'Done, whatever happened.',
      'After the compaction.',
      'Resumed.',
    ]) {
      expect(words.filter((text) => text === word)).toEqual([word]);
    }
    const calls = session.state.sets.index.filter((id) => session.state.isToolResult(id));
    expect(calls).toHaveLength(20 + 9 + 3 + 1 + 3);
    expect(await readFile(join(run.root, 'src', 'f2.txt'), 'utf8')).toContain('line seven');
    expect(session.state.marks.flatMap(({ event }) => event?.kind ?? [])).toContain('compacted');
    const fork = await run.client.openSession({ id: run.fork });
    expect(fork.state.marks.flatMap(({ event }) => event ?? [])).toContainEqual(
      expect.objectContaining({ kind: 'forked', detail: run.session }),
    );
    expect(fork.state.turns.length).toBe(session.state.turns.length + 1);
  });

  test('has its session shown by the command line while it runs', () => {
    const [context = '', log = ''] = run.shown;
    for (const text of [context, log]) expect(text).toContain('working, please');
    // The last result before that call is active, nothing that came later is there.
    expect(context).toContain('only in the shell 1, line 40 of 40');
    for (const text of [context, log]) expect(text).not.toContain('It is done.');
  });

  test('has the same session shown by the command line afterwards', async () => {
    const shown = await palimpsest(run.dataDir, 'context', run.session, '--assemble');
    expect(shown).toContain('user: resumed, please');
    expect(await palimpsest(run.dataDir, 'log', run.session)).toContain('resumed, please');
  });
});
