import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseLabConfig } from '../../../src/lab/laboratory/lab-config.js';
import { runLab } from '../../../src/lab/laboratory/run-lab.js';
import { type LoopSettings, loopPolicy, type OpenDatabase } from '../../../src/lab/policies/loop-policy.js';
import type { PolicyRequest } from '../../../src/lab/policies/policy.js';
import type { Timeline } from '../../../src/lab/timeline/timeline.js';
import { longRecording, RecordingLines, recordingFolder, suiteDatabase } from '../../support/replays.js';
import { noDatabase, timelineOf } from '../../support/timelines.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

const open = async () => suiteDatabase();

async function requestsOf(
  timeline: Timeline,
  settings: Partial<LoopSettings>,
  database: OpenDatabase = open,
): Promise<readonly PolicyRequest[]> {
  const requests: PolicyRequest[] = [];
  const policy = loopPolicy({ layout: 'ssot', per: 'call', shortIds: false, ...settings }, database);
  for await (const request of policy.requests(timeline)) requests.push(request);
  return requests;
}

const textOf = ({ parts }: PolicyRequest): string => parts.map(({ text }) => text).join('\n');

/** A recording that is unique to this run, and so new to the node. */
const own = (lines: RecordingLines): Promise<Timeline> =>
  timelineOf(lines.user(`run ${process.pid} ${Date.now()} ${Math.random()}`).says('noted'));

describe('our own policies in the laboratory', () => {
  test('send the same as the extensions: closed turns as chat, the running turn unchanged, then content', async () => {
    const text = `export const total = 1;\n${'// more of it\n'.repeat(5)}`;
    const lines = new RecordingLines()
      .user('look')
      .reads('r1', '/p/a.ts', text)
      .says('seen')
      .user('and now?')
      .calls('c1', 'Bash', { command: 'ls' })
      .answers('c1', 'a.ts')
      .says('done');
    const timeline = await own(lines);
    const requests = await requestsOf(timeline, {});
    expect(requests).toHaveLength(timeline.calls.length);
    const third = textOf(requests[3] ?? { parts: [] });
    expect(third).toMatch(/type=file path=\/p\/a\.ts/);
    expect(third).toMatch(/user: look[\s\S]*assistant: seen/);
    expect(third).toMatch(/and now\?[\s\S]*ACTIVE_CONTENT[\s\S]*export const total = 1;/);
    for (const { stored } of requests) expect(stored).toBeGreaterThan(0);
  });

  test('begin each request with the previous one until the turn ends, with one context per turn', async () => {
    const timeline = await own(longRecording(4));
    const requests = await requestsOf(timeline, { per: 'turn' });
    for (const [at, call] of timeline.calls.entries()) {
      const before = textOf(requests[at - 1] ?? { parts: [] });
      if (at > 0 && !call.opensTurn) expect(textOf(requests[at] ?? { parts: [] }).startsWith(before)).toBe(true);
    }
  });

  test('name a dropped patch by its files, not by the words that every patch begins with', async () => {
    const log = Array.from({ length: 400 }, (_, i) => `line ${i} of a long log`).join('\n');
    const lines = new RecordingLines().user('look').calls('c', 'Bash', { command: 'cat log' }).answers('c', log);
    for (const [n, path] of ['/p/src/total.ts', '/p/src/tax.ts', '/p/src/cart.ts', '/p/a.ts'].entries()) {
      const input = `*** Begin Patch\n*** Update File: ${path}\n@@\n-old\n+new ${n}\n*** End Patch`;
      lines.user(`fix ${n}`).calls(`p${n}`, 'apply_patch', { input }).answers(`p${n}`, 'Done.').says(`fixed ${n}`);
    }
    // A day later the cache is cold, so an epoch begins.
    const timeline = await own(lines.user('and now?', Date.UTC(2026, 0, 6, 9)).says('ready'));
    const requests = await requestsOf(timeline, { layout: 'epoch', retention: 'window' }, noDatabase);
    const last = textOf(requests.at(-1) ?? { parts: [] });
    expect(last).toMatch(/toolcall_ref id=\S+ tool=apply_patch status=ok args="?\/p\/src\/total\.ts/);
    expect(last).not.toContain('args="*** Begin Patch"');
  });

  test('follow a rewind into a branch', async () => {
    const lines = new RecordingLines().user('first').says('one');
    const { place } = lines;
    lines.user('wrong way').says('two').back(place).user('right way').says('three');
    const requests = await requestsOf(await own(lines), {});
    expect(textOf(requests[1] ?? { parts: [] })).toContain('wrong way');
    expect(textOf(requests[2] ?? { parts: [] })).not.toContain('wrong way');
  });

  test.each([{ layout: 'epoch' }, { layout: 'ssot' }] as const)(
    'send the same bytes with and without a database: %j',
    async (settings) => {
      const timeline = await own(longRecording(24, 2));
      // Calls of two conversations. One is a fork, which needs a database.
      const last = timeline.calls.at(-1);
      if (last === undefined) throw new Error('the recording has no call');
      const forked = { ...timeline, calls: [...timeline.calls.slice(0, -1), { ...last, items: [...last.items] }] };
      const without = await requestsOf(timeline, settings, noDatabase);
      const stored = await requestsOf(forked, settings);
      expect(without.slice(0, -1).map(textOf)).toEqual(stored.slice(0, -1).map(textOf));
      await expect(requestsOf(forked, settings, noDatabase)).rejects.toThrow('unexpected request for a database');
    },
  );

  test('are tried once more in another database, and a row that fails twice is named', async () => {
    const lines = longRecording(6).user(`${process.pid} ${Date.now()}`).says('noted');
    const { place } = lines;
    lines.user('wrong way').says('two').back(place).user('right way').says('three');
    const path = await recordings.write('a.jsonl', lines.text);
    const config = parseLabConfig({ policies: [{ policy: 'palimpsest', layout: 'epoch' }], least: 10 }, 'test');
    const run = async (failing: number) => {
      const said: string[] = [];
      let opened = 0;
      const { report, failures } = await runLab([path], {
        config,
        open: async () => {
          opened += 1;
          if (opened <= failing) throw new Error('the node was slow');
          return suiteDatabase();
        },
        onProgress: (line) => said.push(line),
      });
      const rows = report.policies.map(({ name, pooled: { all } }) => [name, all?.sessions]);
      return { opened, rows, failures: failures.map(({ error }) => error.message), said: said.join('\n') };
    };
    const [once, twice] = [await run(1), await run(2)];
    expect([once.opened, once.failures, once.rows.at(-1)]).toEqual([2, [], ['Palimpsest epoch', 1]]);
    expect(once.said).toMatch(/Palimpsest epoch: the node was slow: trying once more/);
    expect([twice.opened, twice.rows]).toEqual([
      2,
      [
        ['raw', 1],
        ['as the harness sent it', 1],
        ['Palimpsest epoch', undefined],
      ],
    ]);
    expect(twice.failures).toEqual([
      expect.stringMatching(/^claude-code \w+, Palimpsest epoch: failed twice: the node was slow: .*run the recording/),
    ]);
  });

  test('appear beside raw in a report, and close their database after the recording', async () => {
    const lines = longRecording(6);
    const { place } = lines;
    lines.user(`${process.pid} ${Date.now()}`).says('noted').back(place).user('another way').says('taken');
    const path = await recordings.write('a.jsonl', lines.text);
    const policies = [
      { policy: 'palimpsest', layout: 'pool-last' },
      { policy: 'palimpsest', layout: 'ssot', per: 'turn' },
    ];
    let closed = 0;
    const close = async (): Promise<void> => {
      closed += 1;
    };
    const config = parseLabConfig({ policies, least: 10 }, 'test');
    const { report } = await runLab([path], { config, open: async () => ({ ...suiteDatabase(), close }) });
    expect(closed).toBe(1);
    expect(report.policies.map(({ name, pooled: { all } }) => [name, all?.sessions, all?.reasoningKept === 1])).toEqual(
      [
        ['raw', 1, true],
        ['as the harness sent it', 1, true],
        ['Palimpsest pool-last', 1, false],
        ['Palimpsest ssot, once a turn', 1, true],
      ],
    );
  });
});
