import { readFile, rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { watchReportFile } from '../../../src/host/watch-report.js';
import { sessionId } from '../../../src/objects/ids.js';
import type { Step } from '../../../src/objects/step.js';
import { type Agent, stdioAgent, suiteClientFolder } from '../../support/mcp-clients.js';
import { RecordingLines } from '../../support/replays.js';
import { until } from '../../support/until.js';
import { saidIn, WatchedMachine } from '../../support/watched.js';

let watched: WatchedMachine;
let agent: Agent;
let id: string;
let script: RecordingLines;
let written = 0;
beforeEach(async () => {
  watched = await WatchedMachine.create(suiteClientFolder());
  id = watched.prefix;
  [script, written] = [new RecordingLines(), 0];
  await watched.write('project/a.ts', 'one\n');
  await watched.write('project/b.ts', 'two\n');
  await watched.start();
});
/** Starts `palimpsest mcp` as an agent with this session does. */
async function starts(session: string): Promise<void> {
  agent = await stdioAgent(watched.path('project'), [], { CLAUDE_CODE_SESSION_ID: session });
}
afterEach(async () => {
  await agent.close();
  await watched.remove();
  await rm(watchReportFile(watched.dataDir), { force: true });
});

/** Writes the new lines of the script into the transcript, as the agent does. */
async function flush(): Promise<void> {
  const own = { sessionId: id, cwd: watched.path('project') };
  const lines = script.lines.slice(written).map((line) => `${JSON.stringify({ ...JSON.parse(line), ...own })}\n`);
  written = script.lines.length;
  await watched.append(`.claude/projects/-project/${id}.jsonl`, lines.join(''));
}

/** Calls one of our tools as Claude Code does, and returns the call's step. */
async function calls(call: string, tool: string, args: Readonly<Record<string, unknown>>): Promise<Step | undefined> {
  script.calls(call, `mcp__ctx__${tool}`, args);
  await flush();
  const { text, isError, meta } = await agent.call(tool, args, { meta: { 'claudecode/toolUseId': call } });
  expect({ text: isError ? text : '', session: meta.session, call: meta.call }).toEqual({
    text: '',
    session: id,
    call,
  });
  script.answers(call, text);
  await flush();
  const of = (steps: readonly Step[]) => steps.find((step) => step.call?.id.startsWith(call));
  return of(
    await until(
      () => watched.steps(id),
      (steps) => of(steps) !== undefined,
    ),
  );
}

test('calls of palimpsest mcp beside the watcher are steps of the one session, each once', async () => {
  const [a, b] = ['a.ts', 'b.ts'].map((name) => watched.path(`project/${name}`));
  const names = ['native', 'list', 'read', 'off', 'edit'].map((name) => `toolu_${name}_${id}`);
  const [native = '', list = '', read = '', off = '', edit = ''] = names;
  await starts(id);
  script.user('look').reads(native, a ?? '', 'one\n');
  await flush();
  await watched.reached(id, 2);

  script.calls(list, 'mcp__ctx__context', {});
  await flush();
  const context = await agent.call('context', {}, { meta: { 'claudecode/toolUseId': list } });
  expect(context.text).toContain(`session=${id}`);
  expect(context.text).toMatch(/a\.ts file_type=ts char_count=4/);
  script.answers(list, context.text);
  const named = await agent.call('context', {}, { meta: { threadId: id } });
  expect([named.meta.session, named.meta.call]).toEqual([id, undefined]);

  await calls(read, 'read', { path: 'b.ts' });
  const step = await calls(off, 'deactivate', { ids: ['a.ts'] });
  expect(step?.changes.deactivate).toHaveLength(1);
  await calls(edit, 'edit', { path: 'a.ts', oldText: 'one', newText: 'ONE' });
  expect(await readFile(a ?? '', 'utf8')).toBe('ONE\n');
  const store = await watched.store.latest();
  const { sets } = await store.sets(sessionId(id));
  const files = [...(await store.heads(sets.index)).values()].filter(({ document }) => document.type === 'file');
  // One object for each file, whichever way it was read.
  expect(files.map(({ document }) => (document.source as { path: string }).path).sort()).toEqual([a, b]);

  // No other session has one of the calls, and another reading of the transcript adds nothing.
  expect([...(await store.heads(names)).keys()]).toEqual([]);
  const steps = await watched.steps(id);
  expect(saidIn(steps, id).filter((said) => said?.startsWith('toolu_'))).toEqual(names);
  await watched.stop();
  await watched.start();
  script.user('thanks');
  await flush();
  expect((await watched.reached(id, steps.length + 1)).slice(0, -1)).toEqual(steps);

  // A call while no process follows the transcript waits for the next one.
  await watched.stop();
  const away = `toolu_away_${id}`;
  const answer = await agent.call('read', { id: native }, { meta: { 'claudecode/toolUseId': away } });
  expect([answer.isError, answer.meta.session]).toEqual([false, id]);
  script.calls(away, 'mcp__ctx__read', { id: native }).answers(away, answer.text);
  await flush();
  await watched.start();
  expect(saidIn(await watched.reached(id, steps.length + 3), id).at(-1)).toBe(away);
});

test('a call that no followed transcript has keeps its own session', async () => {
  await starts(`${id}-elsewhere`);
  script.user('look');
  await flush();
  await watched.reached(id, 1);
  const meta = { 'claudecode/toolUseId': `toolu_elsewhere_${id}` };
  const answer = await agent.call('read', { path: 'b.ts' }, { meta });
  expect(answer.isError).toBe(false);
  expect(answer.meta.session).not.toBe(id);
  expect((await watched.steps(id)).length).toBe(1);
});
