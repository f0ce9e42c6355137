import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import { guideOf } from '../../src/extensions/guide.js';
import type { AssemblyProof } from '../../src/objects/assembly-proof.js';
import { sessionId } from '../../src/objects/ids.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { type CapturedCall, type LoopModel, type Move, startLoopModel } from './loop-model.js';
import { wordsOf } from './loop-project.js';
import { type LoopSetting, loopSetting } from './loop-setting.js';
import { PARTS, showsLog } from './looped-agent.js';
import { PiProcess } from './pi-process.js';
import { areAsRecorded, checkPairs } from './wire-checks.js';

const shell = (n: number): Move => showsLog('pi', n);

/**
 * One request with Palimpsest, one without, one with it again. Results stay active for at most
 * three requests.
 */
const script = (root: string): readonly (readonly Move[])[] => [
  [...[1, 2, 3, 4, 5, 6, 7].map(shell), { say: 'Said while it was on.' }],
  [
    { tools: [{ name: 'read', args: { path: join(root, 'src', 'f1.txt') } }] },
    shell(8),
    { say: 'Said while it was off.' },
  ],
  [shell(9), { say: 'Said when it was on again.' }],
];
const SAID = ['Said while it was on.', 'Said while it was off.', 'Said when it was on again.'];

interface Run {
  readonly model: LoopModel;
  readonly dataDir: string;
  readonly session: string;
  readonly client: ContextClient;
  /** The calls of each request. */
  readonly calls: readonly (readonly CapturedCall[])[];
  /** The calls of the same work with pi as it is. */
  readonly alone: readonly CapturedCall[];
}

/** Makes the three requests. `between` runs before each of them. */
async function work(
  pi: PiProcess,
  model: LoopModel,
  root: string,
  between: readonly string[],
): Promise<readonly (readonly CapturedCall[])[]> {
  const calls: (readonly CapturedCall[])[] = [];
  for (const [i, moves] of script(root).entries()) {
    const command = between[i];
    if (command !== undefined && command !== '') await pi.prompt(command);
    const from = model.calls.length;
    model.add(moves);
    await pi.prompt(`request ${i + 1}, please`);
    calls.push(model.calls.slice(from).filter(({ main }) => main));
  }
  return calls;
}

describe('Palimpsest turned off and on in a session of pi', () => {
  let run: Run;
  let proofs: readonly AssemblyProof[];
  let setting: LoopSetting;

  beforeAll(async () => {
    setting = await loopSetting();
    const { root, dataDir, model, where } = setting;
    const other = await startLoopModel();
    setting.atEnd(() => other.close());
    const own = await PiProcess.start({ ...where, home: await setting.folder(), model: other, extension: undefined });
    setting.atEnd(() => own.kill());
    const alone = await work(own, other, root, []);
    await own.end();

    const pi = await PiProcess.start({ ...where, extension: PARTS.pi });
    setting.atEnd(() => pi.kill());
    const { sessionId: session } = await pi.command({ type: 'get_state' });
    const calls = await work(pi, model, root, ['', '/palimpsest off', '/palimpsest on']);
    await pi.end();

    const client = await setting.reader();
    run = { model, dataDir, session: String(session), client, calls, alone: alone.flat() };
    proofs = await (await client.store.latest()).assemblies(sessionId(run.session));
  }, 200_000);

  afterAll(() => setting.close());

  test('sends pi’s own whole history when off', () => {
    const [on = [], off = []] = run.calls;
    expect(off).toHaveLength(3);
    const same = run.alone.slice(on.length, on.length + off.length);
    expect(off.map(({ messages }) => messages.slice(1))).toEqual(same.map(({ messages }) => messages.slice(1)));
    for (const { raw, messages } of off) {
      for (let n = 1; n <= 7; n++) expect(raw).toContain(`only in the shell ${n}, line 40 of 40`);
      expect(raw).not.toContain('ACTIVE_CONTENT id=');
      expect(JSON.stringify(messages[0])).not.toContain(JSON.stringify(guideOf('ssot')).slice(1, -1));
    }
  });

  test('sends our contexts when on again, as recorded, and only for those calls', async () => {
    const [on = [], , again = []] = run.calls;
    expect(again).toHaveLength(2);
    const ours = [...on, ...again];
    expect(proofs).toHaveLength(ours.length);
    expect(await areAsRecorded(run.client, ours, proofs)).toEqual(ours.map(() => true));
    for (const { messages } of again)
      expect(JSON.stringify(messages[0])).toContain(JSON.stringify(guideOf('ssot')).slice(1, -1));
  });

  test('when on again, shows the model what was said and read while it was off', () => {
    for (const { raw } of run.calls[2] ?? []) {
      for (const text of ['Said while it was off.', 'request 2, please', 'file 1, line 40 of 40'])
        expect(raw).toContain(text);
      // Two of seven results of one request collapse; pi alone sends them all.
      for (const n of [1, 2]) expect(raw).not.toContain(`only in the shell ${n}, line 40 of 40`);
    }
  });

  test('loses nothing said or done, and records that it was off', async () => {
    const { state } = await run.client.openSession({ id: run.session });
    const words = await wordsOf(run.client, run.session);
    for (const word of SAID) expect(words.filter((text) => text === word)).toEqual([word]);
    // Seven commands, a read and a command while it was off, and one command.
    expect(state.sets.index.filter((id) => state.isToolResult(id))).toHaveLength(7 + 2 + 1);
    const events = state.marks.flatMap(({ event }) => event?.kind ?? []);
    expect(events.filter((kind) => kind === 'paused' || kind === 'resumed')).toEqual(['paused', 'resumed']);
    expect(await loopTroubles(run.dataDir)).toEqual([]);
    const { contexts, answers, parts } = await verifySession(await run.client.delivered(), run.session);
    expect([contexts.unequal, answers.unequal, parts.damages]).toEqual([[], [], []]);
  });

  test('keeps calls and answers paired and in order', () => {
    for (const call of run.calls.flat()) checkPairs(call);
    expect(run.model.left).toBe(0);
  });
});
