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
import { OpencodeServer } from './opencode-server.js';
import { areAsRecorded, checkPairs, inactiveOutputs } from './wire-checks.js';

const OPENCODE: ToolDialect = {
  read: (path) => ({ name: 'read', args: { filePath: path } }),
  shell: (command) => ({ name: 'bash', args: { command, description: 'looks at something' } }),
  edit: (path, oldString, newString) => ({ name: 'edit', args: { filePath: path, oldString, newString } }),
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

describe('OpenCode with contexts of Palimpsest', () => {
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
    const opencode = { home, cwd: root, dataDir, model, plugin: join(dirname(cliPath), 'opencode.js') };
    let session = '';
    let shown: readonly string[] = [];
    const look = async (): Promise<void> => {
      shown = await shownOf(dataDir, session);
    };
    const script = scriptOf(OPENCODE, root, {
      look,
      noticed: versionNoticed(dataDir),
      kill: () => killDatabase(dataDir),
    });
    const start = async (): Promise<OpencodeServer> => {
      const server = await OpencodeServer.start(opencode);
      removals.unshift(async () => server.kill());
      return server;
    };

    const first = await start();
    session = await first.newSession();
    for (const name of ['reading', 'working', 'trouble'] as const) {
      model.add(script[name] ?? []);
      await first.prompt(session, `${name}, please`);
    }
    await startNode(dataDir);
    await first.compact(session);
    model.add(script.compacted ?? []);
    await first.prompt(session, 'compacted, please');
    await first.end();

    const second = await start();
    model.add(script.resumed ?? []);
    await second.prompt(session, 'resumed, please');
    const fork = await second.fork(session);
    model.add(script.forked ?? []);
    await second.prompt(fork, 'forked, please');
    await second.end();

    const client = await reader(dataDir, root);
    removals.unshift(() => client.close());
    run = { model, root, dataDir, session, fork, client, shown };
    main = model.calls.filter((call) => call.main);
    proofs = await (await client.store.latest()).assemblies(sessionId(fork));
  }, 290_000);

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
    expect(all.map(({ delivered }) => delivered)).toEqual(main.map(() => 'opencode'));
    expect(await areAsRecorded(run.client, main, all)).toEqual(main.map(() => true));
  });

  test('can rebuild every context from the database alone', async () => {
    for (const id of [run.session, run.fork]) {
      const { contexts } = await verifySession(await run.client.delivered(), id);
      expect(contexts.unequal).toEqual([]);
      expect(contexts.handedLists).toBe(contexts.total);
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

  test('keeps everything said and done', async () => {
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
  });

  test('has an unnamed fork recognised by its content', async () => {
    const fork = await run.client.openSession({ id: run.fork });
    expect(fork.state.marks.flatMap(({ event }) => event ?? [])).toContainEqual(
      expect.objectContaining({ kind: 'forked', detail: run.session }),
    );
  });

  test('has its session shown by the command line while it runs', () => {
    const [context = '', log = ''] = run.shown;
    for (const text of [context, log]) expect(text).toContain('working, please');
    // The last result before that call is active, nothing that came later is there.
    expect(context).toContain('only in the shell 1, line 40 of 40');
    for (const text of [context, log]) expect(text).not.toContain('It is done.');
  });

  test('has the same session shown by the command line afterwards', async () => {
    expect(await palimpsest(run.dataDir, 'context', run.session, '--assemble')).toContain('user: resumed, please');
    expect(await palimpsest(run.dataDir, 'log', run.session)).toContain('resumed, please');
  });
});
