import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { AssemblyProof } from '../../src/objects/assembly-proof.js';
import { sessionId } from '../../src/objects/ids.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import { cliPath, temporaryRoot } from '../support/mcp-clients.js';
import { type CapturedCall, type LoopModel, type Move, startLoopModel } from './loop-model.js';
import { makeProject, palimpsest, reader, startNode, stopUnusedNode } from './loop-project.js';
import { OpencodeServer } from './opencode-server.js';
import { areAsRecorded, checkPairs } from './wire-checks.js';

const shell = (n: number): Move => ({
  tools: [{ name: 'bash', args: { command: `cat notes/s${n}.log`, description: 'looks' } }],
});
const OK: Move = { say: 'ok' };

describe('Palimpsest turned off and on in a session of OpenCode', () => {
  const removals: (() => Promise<unknown>)[] = [];
  let model: LoopModel;
  let client: ContextClient;
  let dataDir: string;
  let session: string;
  let proofs: readonly AssemblyProof[];
  const calls: Record<'on' | 'off' | 'again', readonly CapturedCall[]> = { on: [], off: [], again: [] };

  beforeAll(async () => {
    const places = await Promise.all([temporaryRoot(), temporaryRoot(), temporaryRoot()]);
    const [root, home, data] = places.map((place) => place.root) as [string, string, string];
    dataDir = data;
    model = await startLoopModel();
    removals.push(() => model.close(), ...places.map(({ remove }) => remove));
    await makeProject(root);
    await startNode(dataDir);
    removals.unshift(() => stopUnusedNode(dataDir));
    const server = await OpencodeServer.start({
      home,
      cwd: root,
      dataDir,
      model,
      plugin: join(dirname(cliPath), 'opencode.js'),
    });
    removals.unshift(async () => server.kill());
    session = await server.newSession();
    const during = async (work: () => Promise<void>, ...moves: readonly Move[]): Promise<readonly CapturedCall[]> => {
      const from = model.calls.length;
      model.add(moves);
      await work();
      return model.calls.slice(from).filter(({ main }) => main);
    };
    calls.on = await during(() => server.prompt(session, 'request 1'), ...[1, 2, 3, 4, 5, 6, 7].map(shell), {
      say: 'Said while on.',
    });
    const turnedOff = await during(() => server.command(session, 'palimpsest', 'off'), OK);
    const off = await during(() => server.prompt(session, 'request 2'), shell(8), { say: 'Said while off.' });
    calls.off = [...turnedOff, ...off];
    const turnedOn = await during(() => server.command(session, 'palimpsest', 'on'), OK);
    calls.again = [
      ...turnedOn,
      ...(await during(() => server.prompt(session, 'request 3'), shell(9), { say: 'Said on again.' })),
    ];
    model.add([{ say: 'The end.' }]);
    await server.prompt(session, 'request 4');
    await server.end();
    client = await reader(dataDir, root);
    removals.unshift(() => client.close());
    proofs = await (await client.store.latest()).assemblies(sessionId(session));
  }, 200_000);

  afterAll(async () => {
    for (const remove of removals) await remove();
  });

  test('sends the own whole history when off', () => {
    expect(calls.off).toHaveLength(3);
    for (const { raw } of calls.off) {
      for (let n = 1; n <= 7; n++) expect(raw).toContain(`only in the shell ${n}, line 40 of 40`);
      expect(raw).not.toContain('ACTIVE_CONTENT id=');
      expect(raw).not.toContain('Palimpsest keeps your working context');
    }
  });

  test('sends our contexts when on again, as recorded, with the messages in between', async () => {
    expect(calls.again).toHaveLength(3);
    const ours = [...calls.on, ...calls.again];
    expect(await areAsRecorded(client, ours, proofs)).toEqual(ours.map(() => true));
    expect(proofs).toHaveLength(ours.length + 1);
    for (const { raw } of calls.again) expect(raw).toContain('Said while off.');
    for (const call of model.calls) checkPairs(call);
  });

  test('loses nothing', async () => {
    const { state } = await client.openSession({ id: session });
    const words = state.turns.flatMap(({ messages }) => messages.map(({ text }) => text));
    // The last one right before OpenCode ended.
    for (const word of ['Said while on.', 'Said while off.', 'Said on again.', 'The end.'])
      expect(words.filter((text) => text === word)).toEqual([word]);
    expect(state.sets.index.filter((id) => state.isToolResult(id))).toHaveLength(7 + 1 + 1);
    const kinds = state.marks.flatMap(({ event }) => event?.kind ?? []);
    expect(kinds.filter((kind) => kind === 'paused' || kind === 'resumed')).toEqual(['paused', 'resumed']);
    expect(await loopTroubles(dataDir)).toEqual([]);
    expect(model.left).toBe(0);
    expect(await palimpsest(dataDir, 'log', session)).toContain('The end.');
  });
});
