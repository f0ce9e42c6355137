import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../src/client/session/context-client.js';
import type { AssemblyProof } from '../../src/objects/assembly-proof.js';
import { sessionId } from '../../src/objects/ids.js';
import { loopTroubles } from '../../src/process/process-reports.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { wireText } from '../support/prefix-check.js';
import type { Move } from './loop-model.js';
import { type LoopSetting, loopSetting } from './loop-setting.js';
import { DIALECTS, type Harness, showsLog, startLoopedAgent } from './looped-agent.js';
import { type ThinkingCall, ThinkingWire } from './thinking-wire.js';

interface Run {
  readonly client: ContextClient;
  readonly sessions: readonly string[];
  /** The calls of each part of the work. */
  readonly parts: ReadonlyMap<string, readonly ThinkingCall[]>;
  readonly proofs: readonly AssemblyProof[];
}

/**
 * The model's window in tokens. One turn of long outputs exceeds the share that a request may have.
 */
const WINDOW = 100_000;
/** Number of calls in that turn; each has 7,000 characters. */
const LONG = 44;

/**
 * Runs a session through every stage, with a provider that refuses requests whose thinking it did
 * not sign.
 */
async function work(harness: Harness, setting: LoopSetting, wire: ThinkingWire): Promise<Run> {
  const { root, model } = setting;
  const env = { PALIMPSEST_LOOP_LAYOUT: 'epoch', PALIMPSEST_LOOP_RETENTION: 'window' };
  const agent = await startLoopedAgent(harness, { ...setting.where, env });
  setting.atEnd(() => agent.kill());

  const { read, shell, edit } = DIALECTS[harness];
  const file = (n: number): string => join(root, 'src', `f${n}.txt`);
  const log = (n: number): Move => showsLog(harness, n);
  const verb = (name: string, ...ids: readonly string[]): Move => ({ tools: [{ name, args: { ids } }] });
  const parts = new Map<string, readonly ThinkingCall[]>();
  const part = async (name: string, ...moves: readonly Move[]): Promise<void> => {
    const from = wire.seen.length;
    model.add(moves);
    await agent.prompt(`${name}, please`);
    parts.set(name, wire.seen.slice(from));
  };
  const sessions: string[] = [];

  await part(
    'reading',
    ...[1, 2, 3, 4].map((n): Move => ({ tools: [read(file(n))] })),
    { tools: [read(file(5)), read(file(6))], meanwhile: () => appendFile(file(3), 'changed from outside\n') },
    ...[1, 2, 3, 4, 5, 6].map(log),
    { tools: [read(file(4))] },
    { say: 'I have read everything.' },
  );
  await part(
    'working',
    verb('deactivate', file(1), file(2)),
    log(7),
    verb('activate', file(1)),
    {
      tools: [edit(file(4), 'file 4, line 7 of 40', 'line seven')],
      meanwhile: () => appendFile(file(1), 'changed again from outside\n'),
    },
    log(8),
    {
      tools: [edit(file(6), 'file 6, line 7 of 40', 'line seven')],
      meanwhile: () => appendFile(file(6), 'changed under its hands\n'),
    },
    { tools: [shell(`grep -c 'line seven' ${file(6)}; true`)] },
    verb('pin', file(5)),
    { say: 'It is done.' },
  );
  await agent.command('tidy');
  await part('tidied', log(9), verb('activate', file(2)), { say: 'All is tidy.' });
  await agent.compact();
  await part('compacted', log(1), { say: 'After the compaction.' });
  await agent.restart();
  await part('resumed', log(2), verb('activate', file(10)), { say: 'Resumed.' });
  await agent.command('off');
  await part('off', log(3), { tools: [read(file(11))] }, { say: 'While it was off.' });
  await agent.command('on');
  await part('on', log(4), { say: 'On again.' });
  await agent.command('off');
  await part('off once more', log(5), { say: 'Off once more.' });
  await agent.restart();
  await part('resumed on', log(6), { say: 'Resumed with it on.' });
  sessions.push(agent.session);
  await agent.fork();
  await part('forked', log(7), { tools: [read(file(12))] }, { say: 'On another way.' });
  const long = Array.from(
    { length: LONG },
    (_, i): Move => ({ tools: [shell(`seq ${100_000 + 1_000 * i} ${100_999 + 1_000 * i}`)] }),
  );
  await part('pressed', ...long, { say: 'That was long.' });
  sessions.push(agent.session);
  await agent.end();

  const client = await setting.reader();
  const proofs = await (await client.store.latest()).assemblies(sessionId(agent.session));
  return { client, sessions, parts, proofs };
}

describe.each(['pi', 'opencode'] as const)(
  '%s in epochs, with a provider that binds thinking to its prefix',
  (harness) => {
    let setting: LoopSetting;
    let run: Run;
    const callsOf = (...names: readonly string[]): readonly ThinkingCall[] =>
      names.flatMap((name) => run.parts.get(name) ?? []);
    const textOf = (name: string): string =>
      callsOf(name)
        .map(({ request }) => JSON.stringify(request.messages))
        .at(-1) ?? '';

    beforeAll(async () => {
      const wire = new ThinkingWire();
      setting = await loopSetting({ wire, window: WINDOW });
      run = await work(harness, setting, wire);
    }, 290_000);
    afterAll(() => setting.close());

    test('has no refused request, and every returned block of thinking is valid', () => {
      const all = [...run.parts].flatMap(([name, calls]) => calls.map(({ fault = 'none' }) => `${name}: ${fault}`));
      expect(all.filter((one) => !one.endsWith(': none'))).toEqual([]);
      expect(setting.model.left).toBe(0);
      // All thinking of the running turn comes back with each of its calls.
      for (const [name, calls] of run.parts)
        expect([name, calls.at(-1)?.returned ?? 0]).toEqual([name, expect.any(Number)]);
      expect(callsOf('reading').map(({ returned }) => returned)).toEqual(callsOf('reading').map((_, i) => i));
    });

    test('sends no model call with the harness’s own context while it is on', async () => {
      expect(await loopTroubles(setting.dataDir)).toEqual([]);
    });

    test('begins every request inside an epoch with the whole previous one', () => {
      const broken = [...run.parts].flatMap(([name, calls]) =>
        calls.slice(1).flatMap(({ request }, i) => {
          const before = calls[i]?.request;
          return before !== undefined && wireText(request).startsWith(wireText(before))
            ? []
            : [`${name}, call ${i + 2}`];
        }),
      );
      expect(broken.filter((one) => !one.startsWith('pressed'))).toEqual([]);
      expect(broken.filter((one) => one.startsWith('pressed'))).toHaveLength(1);
    });

    test('drops the running turn’s thinking at once and for good when the request exceeds the budget', () => {
      const calls = callsOf('pressed');
      const returned = calls.map((call) => call.returned);
      const border = returned.findIndex((count, i) => i > 0 && count < (returned[i - 1] ?? 0));
      expect(border).toBeGreaterThan(10);
      expect(returned.slice(border)).toEqual(returned.slice(border).map((_, i) => i));
      expect(calls[border]?.chars).toBeLessThan(0.75 * (calls[border - 1]?.chars ?? 0));
    });

    test('keeps system prompt and tools while it is on', () => {
      const on = callsOf('reading', 'working', 'tidied', 'compacted', 'resumed', 'on', 'forked');
      const fixed = on.map(({ request: { system, tools } }) =>
        wireText({ system: system ?? '', tools: tools ?? [], messages: [] }),
      );
      expect(new Set(fixed.map((text) => text.replace(/<env>[\s\S]*?<\/env>/g, ''))).size).toBe(1);
    });

    test('appends outside changes and activated objects', () => {
      expect(textOf('reading')).toContain('changed from outside');
      expect(textOf('working')).toContain('changed again from outside');
      expect(textOf('working').split('changed=lines').length).toBeGreaterThan(1);
      expect(textOf('tidied')).toContain('file 2, line 40 of 40');
    });

    test('shows an unchanged repeated read as a line; the harness’s own list has its text', () => {
      const again = (text: string): number => text.split('is unchanged; its text stands above').length - 1;
      expect(again(textOf('reading'))).toBe(1);
      expect(textOf('reading').split('file 4, line 7 of 40').length - 1).toBe(1);
      for (const { request } of callsOf('off')) expect(again(JSON.stringify(request.messages))).toBe(0);
    });

    test('blocks an edit of a file that changed unseen until the change is reported', () => {
      const told = textOf('working').split('was changed on the disk since you last saw it');
      expect(told).toHaveLength(2);
      expect(told[1]).toMatch(/^\. The changed lines with their numbers:.*\+changed under its hands/);
      expect(told[1]).toMatch(/Nothing was done\. If your change still fits, make it again\./);
    });

    test('begins an epoch on request, and shows removed results as lines', () => {
      const { proofs } = run;
      const reasons = proofs.flatMap(({ epoch }) =>
        epoch !== undefined && epoch.previous === undefined ? [epoch.reason] : [],
      );
      expect(reasons[0]).toBe('first');
      expect(reasons).toContain('asked');
      expect(reasons).toContain('history');
      expect(reasons).toContain('pressure');
      expect(textOf('tidied')).toContain('toolcall_ref id=');
      expect(textOf('tidied')).not.toContain('only in the shell 1, line 40 of 40');
    });

    test('sends the harness’s whole history when off, without thinking bound to our contexts', () => {
      for (const { request } of callsOf('off')) {
        const text = JSON.stringify(request.messages);
        expect(text).not.toContain('ACTIVE_CONTENT id=');
        expect(text).toContain('After the compaction.');
      }
      expect(callsOf('off').at(-1)?.returned).toBe(harness === 'pi' ? 2 : 3);
    });

    test('can rebuild every context from the database alone', async () => {
      for (const id of run.sessions) {
        const { contexts } = await verifySession(await run.client.delivered(), id);
        expect(contexts.unequal).toEqual([]);
        expect(contexts.total).toBeGreaterThan(0);
      }
    });
  },
);
