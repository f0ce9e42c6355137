import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { replayFile } from '../../../src/lab/report/replay-file.js';
import type { ReplayReport } from '../../../src/lab/report/replay-report.js';
import { type ObjectId, sessionId } from '../../../src/objects/ids.js';
import { PAGE_STEPS } from '../../../src/store/step-page.js';
import { countRequests } from '../../support/context.js';
import { historyOf } from '../../support/object-history.js';
import { onOneNode } from '../../support/on-one-node.js';
import {
  config,
  longRecording,
  RecordingLines,
  replay,
  reviewedRecordings,
  suiteDatabase,
} from '../../support/replays.js';

let reviewed: Awaited<ReturnType<typeof reviewedRecordings>>;
let recordings: typeof reviewed.recordings;
let reviewer: typeof reviewed.reviewer;
beforeEach(async () => {
  reviewed = await reviewedRecordings();
  ({ recordings, reviewer } = reviewed);
});
afterEach(() => reviewed.close());

const run = async (lines: RecordingLines, options: Parameters<typeof replay>[1] = {}) =>
  replay(await recordings.write('a.jsonl', lines.text), options);
const session = ({ sessions }: ReplayReport) => sessionId(sessions[0]?.session ?? '');

async function objects(report: ReplayReport) {
  const store = await reviewer.snapshot();
  const { sets } = await store.sets(session(report));
  const found = await store.getMany(sets.index);
  return { sets, all: sets.index.map((id) => found.get(id)?.version) };
}

describe('a replayed session', () => {
  test('has the steps of a live one: messages, calls under wrapped tools’ names, files by their texts', async () => {
    const report = await run(new RecordingLines().user('look').reads('toolu_1', '/p/a.ts', 'one\ntwo\n').says('seen'));
    const { sets, all } = await objects(report);
    const chat = (await (await reviewer.snapshot()).get(`chat:${session(report)}`))?.version;
    expect(chat).toMatchObject({
      turns: [
        {
          turn: 1,
          messages: [
            { role: 'user', text: 'look' },
            { role: 'assistant', text: '', toolcall_refs: [`toolu_1@${session(report)}`] },
            { role: 'assistant', text: 'seen' },
          ],
        },
      ],
    });
    expect(all).toMatchObject([
      { type: 'file', source: { path: '/p/a.ts' }, content: 'one\ntwo\n' },
      { type: 'toolcall', tool: 'read', args: { path: '/p/a.ts' }, status: 'ok', content: 'one\ntwo\n' },
    ]);
    expect(sets.active).toEqual(sets.index);
    expect(report.contexts.each.map(({ step }) => step)).toEqual([1, 3]);
  });

  test('keeps each empty answer with calls as a separate message with its own calls', async () => {
    const lines = new RecordingLines().user('look').says('I shall.');
    for (const n of [1, 2, 3]) lines.reads(`t${n}`, `/p/${n}.ts`, `${n}\n`);
    // The result of a call comes after the model has continued.
    lines.calls('late', 'Bash', { command: 'sleep 9' }).calls('soon', 'Bash', { command: 'true' });
    const report = await run(lines.answers('soon', 'done').answers('late', 'woken').says('seen'));
    const id = session(report);
    const snapshot = await reviewer.snapshot();
    const silent = (...calls: string[]) => ({
      role: 'assistant',
      text: '',
      toolcall_refs: calls.map((call) => `${call}@${id}`),
    });
    expect((await snapshot.get(`chat:${id}`))?.version).toMatchObject({
      turns: [
        {
          turn: 1,
          messages: [
            { role: 'user', text: 'look' },
            { role: 'assistant', text: 'I shall.' },
            silent('t1'),
            silent('t2'),
            silent('t3'),
            silent('late'),
            silent('soon'),
            { role: 'assistant', text: 'seen' },
          ],
        },
      ],
    });
  });

  test('replays over a session in which an earlier version omitted empty answers', async () => {
    const at = (second: number) => new Date(Date.UTC(2026, 0, 5, 9, 0, second)).toISOString();
    const line = (second: number, type: string, payload: object) =>
      `${JSON.stringify({ timestamp: at(second), type, payload })}\n`;
    const item = (second: number, payload: object) => line(second, 'response_item', payload);
    // Records without an envelope are of versions that counted nothing, so no answer is empty.
    const bare = (second: number, payload: object) => `${JSON.stringify({ timestamp: at(second), ...payload })}\n`;
    const text = (type: string, said: string) => ({ content: [{ type, text: said }] });
    // The model's thoughts before its call: a message without text.
    const thought = (second: number) =>
      item(second, { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] });
    const afterOf = (one: typeof item): string =>
      [
        one(4, { type: 'function_call', name: 'shell', arguments: '{"command":["true"]}', call_id: 'c1' }),
        one(5, { type: 'function_call_output', call_id: 'c1', output: 'done' }),
        one(6, { type: 'message', role: 'assistant', ...text('output_text', 'seen') }),
      ].join('');
    const prompt = { type: 'message', role: 'user', ...text('input_text', 'look') };
    const before = [
      line(1, 'session_meta', {
        id: 's-1',
        timestamp: at(1),
        cwd: '/p',
        originator: 'codex_cli_rs',
        cli_version: '0.50.0',
      }),
      item(2, prompt),
    ].join('');
    const dataDir = await mkdtemp(join(recordings.folder, 'data-'));
    const into = `left-out-${process.pid}-${Date.now()}`;
    const replayed = async (recorded: string) =>
      replayFile(
        await recordings.write('a.jsonl', recorded),
        { ...suiteDatabase(), dataDir },
        { config: config(), into },
      );
    const old = await replayed(before.replace(item(2, prompt), bare(2, prompt)) + afterOf(bare));
    // Another message ends it, after everything that was replayed.
    const again = await replayed(before + thought(3) + afterOf(item) + thought(7));
    expect(again.recorded.messages).toMatchObject({ assistant: 3 });
    expect(again.digest).toBe(old.digest);
  });

  test('shows a wholly read file once in its contexts, and twice as recorded', async () => {
    const text = 'a telling line of text\n'.repeat(40);
    const lines = new RecordingLines().user('look').reads('toolu_1', '/p/a.ts', text).says('seen');
    const wrapped = await run(lines);
    const recorded = await run(lines, { config: config({ tools: 'recorded' }) });
    const active = (report: ReplayReport) => report.contexts.sections.active?.chars.max ?? 0;
    expect(active(recorded)).toBeGreaterThan(active(wrapped));
    expect((await objects(recorded)).all).toMatchObject([
      {},
      { tool: 'Read', content: expect.stringMatching(/^ {5}1→a telling line of text\n/) },
    ]);
  });

  test("uses the recording's clock for valid times and no file of this machine", async () => {
    const report = await run(
      new RecordingLines().user('look').reads('toolu_1', '/etc/hostname', 'recorded\n').says('seen'),
    );
    const { sets, all } = await objects(report);
    expect(all[0]).toMatchObject({
      content: 'recorded\n',
      source: { filesystemId: expect.stringMatching(/^replay-/) },
    });
    const [version] = await historyOf(await reviewer.snapshot(), sets.index[0] as ObjectId);
    expect(version?.validTime.toISOString()).toBe('2026-01-05T09:00:03.000Z');
  });

  test('follows edits from version to version, and reports the context at each', async () => {
    const report = await run(longRecording(9, 3));
    expect(report.objects.files).toMatchObject({ created: 3, updated: 9, stubs: 0, deleted: 0 });
    expect(report.uses.edited).toEqual({ active: 9, shown: 0, 'one-step': 0, absent: 0 });
    expect(report.recorded.changes).toEqual({ followed: 9, unknown: 0 });
    const { all } = await objects(report);
    expect(all[0]).toMatchObject({ content: expect.stringMatching(/^export const value = 7;/) });
  });

  onOneNode('asks the database for a file once, however often it comes', async () => {
    const [short, long] = [
      await countRequests(() => run(longRecording(6, 3))),
      await countRequests(() => run(longRecording(24, 3))),
    ];
    expect(long.result.recorded.calls).toBeGreaterThan(3 * short.result.recorded.calls);
    // Each page of steps is assembled on a different basis.
    const pages = ({ result }: typeof long) => Math.floor(result.steps / PAGE_STEPS);
    expect((long.requests['/_xtdb/db'] ?? 0) - pages(long)).toBe((short.requests['/_xtdb/db'] ?? 0) - pages(short));
  });

  test('uses the window of its configuration', async () => {
    const report = await run(longRecording(8), { config: config({ window: { perTurn: 1, turns: 1 } }) });
    const last = report.contexts.each.at(-1);
    // Seven files, which the window ignores, and one result.
    expect(last?.active).toBe(8);
  });

  test('keeps the last version of a file whose text becomes unknown, and takes a new one once shown', async () => {
    const text = 'one\n';
    const lines = new RecordingLines().user('go').reads('t1', '/p/a.ts', text);
    lines.calls('t2', 'Bash', { command: "sed -i 's/o.e/two/' /p/a.ts" }).answers('t2', '');
    const before = await run(lines);
    expect((await objects(before)).all[0]).toMatchObject({ content: 'one\n' });
    expect(before.recorded.changes).toEqual({ followed: 0, unknown: 1 });
    expect(before.tree).toMatchObject({ whole: 0, stale: 1 });
    const after = await run(lines.reads('t3', '/p/a.ts', 'two\n'));
    expect((await objects(after)).all[0]).toMatchObject({ content: 'two\n' });
  });

  test('deletes and discovers what the recording proves', async () => {
    const lines = new RecordingLines().user('go').reads('t1', '/p/a.ts', 'x\n');
    lines.calls('t2', 'Bash', { command: 'rm /p/a.ts' }).answers('t2', '');
    lines.calls('t3', 'Glob', { pattern: '*' }).answers('t3', '/p/b.ts\n/p/c.ts', {
      twin: { filenames: ['/p/b.ts', '/p/c.ts'], numFiles: 2, truncated: false },
    });
    const report = await run(lines);
    expect(report.objects.files).toMatchObject({ created: 3, stubs: 2, deleted: 1 });
    const paths = (await objects(report)).all.flatMap((version) =>
      version?.type === 'file' ? [[version.source?.path, version.content]] : [],
    );
    expect(paths).toEqual([
      ['/p/a.ts', null],
      ['/p/b.ts', null],
      ['/p/c.ts', null],
    ]);
  });

  test('reports whether quoted text was in the context', async () => {
    const line = 'export function somethingLongEnough(): string { return "quoted"; }';
    const lines = new RecordingLines().user('go').reads('t1', '/p/a.ts', `${line}\n`).says(`There is this:\n${line}`);
    const { uses } = await run(lines);
    expect(uses.quoted).toEqual({ active: 1, shown: 0, 'one-step': 0, absent: 0 });
    expect(uses.each).toMatchObject([{ use: 'quoted', path: '/p/a.ts', standing: 'active', step: 3 }]);
  });

  test('records failed and unanswered calls as failed without touching a file', async () => {
    const lines = new RecordingLines()
      .user('go')
      .calls('t1', 'Read', { file_path: '/p/a.ts' })
      .answers('t1', 'no such file', { failed: true });
    const report = await run(lines.calls('t2', 'Write', { file_path: '/p/b.ts', content: 'x' }));
    expect(report.recorded).toMatchObject({ calls: 2, results: 1, failed: 2, unanswered: 1 });
    expect(report.objects.files.created).toBe(0);
    expect((await objects(report)).all).toMatchObject([
      { tool: 'read', status: 'fail', content: 'no such file' },
      { tool: 'write', status: 'fail', content: '' },
    ]);
  });

  test('stores the proof of every assembled context (decision E7)', async () => {
    const report = await run(longRecording(2));
    const proofs = await (await reviewer.snapshot()).assemblies(session(report));
    expect(proofs.map(({ step, sha256, delivered }) => ({ step, sha256, delivered }))).toEqual(
      report.contexts.each.map(({ step, sha256 }) => ({ step, sha256, delivered: 'replay' })),
    );
  });

  test('goes into the given session', async () => {
    const into = `into-${process.pid}-${Date.now()}`;
    const report = await run(longRecording(1), { into });
    expect(report.sessions).toMatchObject([{ session: into }]);
  });
});

test('refuses a known recording with another configuration, names difference and remedy, then replays it', async () => {
  const path = await recordings.write(
    'a.jsonl',
    new RecordingLines().user('look').reads('toolu_1', '/p/a.ts', 'one\n').says('seen').text,
  );
  const database = { ...suiteDatabase(), dataDir: await mkdtemp(join(recordings.folder, 'data-')) };
  const variant = `config-${process.pid}-${Date.now()}`;
  const first = await replayFile(path, database, { config: config(), variant });
  for (const [other, said] of [
    [{ strict: true }, 'strict was false there and is true here'],
    [{ tools: 'recorded' }, 'tools was "wrapped" there and is "recorded" here'],
  ] as const) {
    await expect(replayFile(path, database, { config: config(other), variant })).rejects.toMatchObject({
      code: 'other-config',
      message: expect.stringMatching(new RegExp(`another configuration \\(${said}\\).*--into SESSION`)),
    });
  }
  expect(await replayFile(path, database, { config: config(), variant })).toEqual(first);
  const into = await replayFile(path, database, { config: config({ strict: true }), into: `into-${variant}` });
  expect(into.steps).toBe(first.steps);
});
