import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { AssemblyProof } from '../../src/objects/assembly-proof.js';
import { sessionId } from '../../src/objects/ids.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import type { CapturedCall, Move } from './loop-model.js';
import { palimpsest, wordsOf } from './loop-project.js';
import { type LoopSetting, loopSetting } from './loop-setting.js';
import { showsLog, startLoopedServer } from './looped-agent.js';
import { areAsRecorded, checkPairs } from './wire-checks.js';

const shell = (n: number): Move => showsLog('opencode', n);
const OK: Move = { say: 'ok' };

describe('Palimpsest turned off and on in a session of OpenCode', () => {
  let setting: LoopSetting;
  let client: ContextClient;
  let session: string;
  let proofs: readonly AssemblyProof[];
  const calls: Record<'on' | 'off' | 'again', readonly CapturedCall[]> = { on: [], off: [], again: [] };

  beforeAll(async () => {
    setting = await loopSetting();
    const { server, session: id, during } = await startLoopedServer(setting);
    session = id;
    const request = (n: number, ...moves: readonly Move[]) => during(() => server.prompt(id, `request ${n}`), ...moves);
    const command = (words: string) => during(() => server.command(id, 'palimpsest', words), OK);
    calls.on = await request(1, ...[1, 2, 3, 4, 5, 6, 7].map(shell), { say: 'Said while on.' });
    calls.off = [...(await command('off')), ...(await request(2, shell(8), { say: 'Said while off.' }))];
    calls.again = [...(await command('on')), ...(await request(3, shell(9), { say: 'Said on again.' }))];
    await request(4, { say: 'The end.' });
    await server.end();
    client = await setting.reader();
    proofs = await (await client.store.latest()).assemblies(sessionId(id));
  }, 200_000);

  afterAll(() => setting.close());

  test('sends the whole history of the harness when off', () => {
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
    for (const call of setting.model.calls) checkPairs(call);
  });

  test('loses nothing', async () => {
    const words = await wordsOf(client, session);
    // The last text was sent right before OpenCode ended.
    for (const word of ['Said while on.', 'Said while off.', 'Said on again.', 'The end.'])
      expect(words.filter((text) => text === word)).toEqual([word]);
    const { state } = await client.openSession({ id: session });
    expect(state.sets.index.filter((id) => state.isToolResult(id))).toHaveLength(7 + 1 + 1);
    const kinds = state.marks.flatMap(({ event }) => event?.kind ?? []);
    expect(kinds.filter((kind) => kind === 'paused' || kind === 'resumed')).toEqual(['paused', 'resumed']);
    expect(await loopTroubles(setting.dataDir)).toEqual([]);
    expect(setting.model.left).toBe(0);
    expect(await palimpsest(setting.dataDir, 'log', session)).toContain('The end.');
  });
});
