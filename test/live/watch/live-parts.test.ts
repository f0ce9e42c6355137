import { mkdir, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { fileObjectId } from '../../../src/client/file-access.js';
import { canonicalPath, sessionId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { importSession } from '../../../src/own-sessions/import-session.js';
import { RecordingLines, suiteDatabase } from '../../support/replays.js';
import { saidIn, WatchedMachine } from '../../support/watched.js';

let watched: WatchedMachine;
let id: string;
beforeEach(async () => {
  watched = await WatchedMachine.create();
  id = watched.prefix;
});
afterEach(() => watched.remove());

const AT = '.claude/projects/-p/a.jsonl';
const lines = (recording: RecordingLines): readonly Record<string, unknown>[] =>
  recording.lines.map((line) => JSON.parse(line.replaceAll('"s-1"', JSON.stringify(id))));
const append = (...records: readonly unknown[]): Promise<void> =>
  watched.append(AT, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
const session = () => watched.followed.session('claude-code', id, { transcript: watched.path(AT) });
const said = async () => saidIn(await watched.steps(id), id);

describe('an answer that comes in parts', () => {
  test('is recorded part by part, and recognised when the whole is read again', async () => {
    await watched.start();
    const [prompt, first, second, next] = lines(new RecordingLines().user('go').says('one').says('two').user('on'));
    const message = { ...(first?.message as object), id: 'm-same' };
    const thought = { ...message, content: [{ type: 'thinking', thinking: 'hm', signature: 's' }] };
    await append(prompt, { ...first, uuid: 'u-0', message: thought });
    await session();
    await watched.reached(id, 1);
    expect(await said()).toEqual(['go']);
    await append({ ...first, message });
    await watched.reached(id, 2);
    await append({ ...second, message: { ...message, content: [{ type: 'text', text: 'two' }] } });
    await watched.reached(id, 3);
    await watched.stop();
    await append(next);
    await watched.start();
    await watched.reached(id, 4);
    expect(await said()).toEqual(['go', 'one', 'two', 'on']);
  });

  test('keeps the tokens that the provider counted', async () => {
    await watched.start();
    const [prompt, answer] = lines(new RecordingLines().user('go').says('one'));
    const usage = { input_tokens: 3, output_tokens: 5, cache_read_input_tokens: 70, cache_creation_input_tokens: 20 };
    await append(prompt, { ...answer, message: { ...(answer?.message as object), usage } });
    const [, step] = await watched.reached(id, 2);
    expect(step?.usage).toEqual({ model: 'a-model', input: 3, output: 5, cacheRead: 70, cacheWrite: 20 });
  });
});

describe('a result that the model saw in another form', () => {
  test('is followed by an event with the text, and recognised when the whole is read again', async () => {
    await watched.start();
    const all = lines(new RecordingLines().user('go').calls('t1', 'Bash', {}).answers('t1', 'much').says('so'));
    await append(...all.slice(0, 3));
    await watched.reached(id, 3);
    const replacements = [{ kind: 'tool-result', toolUseId: 't1', replacement: 'little' }];
    await append({ type: 'content-replacement', sessionId: id, replacements });
    const [, , , event] = await watched.reached(id, 4);
    expect(event?.event).toEqual({ kind: 'shortened', detail: expect.stringContaining('t1:\nlittle') });
    await watched.stop();
    await append(all[3]);
    await watched.start();
    await watched.reached(id, 5);
    expect(await said()).toEqual(['go', '', 't1', 'shortened', 'so']);
  });
});

describe('the files of a call', () => {
  /** Records a read of a file of the project that happened at a time. */
  async function reads(text: string, onDisk: string, at: number) {
    const project = watched.path('project');
    await mkdir(project, { recursive: true });
    await writeFile(`${project}/a.ts`, onDisk);
    const all = lines(new RecordingLines().user('go').reads('t1', `${project}/a.ts`, text).says('so'));
    await append(...all.map((record) => ({ ...record, cwd: project, timestamp: new Date(at).toISOString() })));
    await watched.reached(id, 4);
    const source = filesystemSource(watched.filesystemId, canonicalPath(`${project}/a.ts`));
    const snapshot = await watched.store.latest();
    const steps = await snapshot.steps(sessionId(id));
    const stored = await snapshot.get(fileObjectId(source));
    return { notes: steps.find(({ call }) => call !== undefined)?.notes, stored: stored?.version.content };
  }

  test('are stored from disk if the call has just ended', async () => {
    await watched.start();
    expect(await reads('one\n', 'one\n', Date.now())).toEqual({ notes: undefined, stored: 'one\n' });
  });

  test('are stored from disk with marks in place of their secrets', async () => {
    await watched.start();
    const text = 'API_KEY=abcDEF123456ghiJKL\n';
    const { notes, stored } = await reads(text, text, Date.now());
    expect([notes, stored]).toEqual([undefined, expect.stringMatching(/^API_KEY=⟦masked:secret:\w+⟧\n$/)]);
  });

  test('are stored twice, with a note, if disk and transcript differ', async () => {
    await watched.start();
    const { notes, stored } = await reads('one\n', 'other\n', Date.now());
    expect(stored).toBe('other\n');
    expect(notes).toEqual([expect.stringMatching(/a\.ts: at that moment the content on disk differed/)]);
  });

  test('are not taken from disk if the call ended long ago', async () => {
    await watched.start();
    expect(await reads('one\n', 'other\n', Date.now() - 60_000)).toEqual({ notes: undefined, stored: undefined });
  });
});

describe('a session that a person opens', () => {
  const open = () => {
    const chosen = { id, agent: 'Claude Code', title: '', path: watched.path(AT), size: 1, mtime: 1 };
    return importSession(chosen, {
      database: { ...suiteDatabase(), dataDir: watched.dataDir },
      store: watched.store,
    });
  };

  test('is the followed session while it is followed', async () => {
    await watched.start();
    await append(...lines(new RecordingLines().user('go').says('one')));
    await watched.reached(id, 2);
    expect(await open()).toEqual({ session: id, outcome: 'followed' });
    await append(...lines(new RecordingLines().user('go').says('one').user('on').says('two')).slice(2));
    await watched.reached(id, 4);
    expect(await said()).toEqual(['go', 'one', 'on', 'two']);
  });

  test('is the same session before and after it is followed', async () => {
    const all = lines(new RecordingLines().user('go').says('one').user('on').says('two').user('more').says('three'));
    await append(...all.slice(0, 2));
    expect((await open()).outcome).toBe('imported');
    await watched.start();
    await append(...all.slice(2, 4));
    await watched.reached(id, 4);
    await watched.stop();
    await append(...all.slice(4));
    expect(await open()).toEqual({ session: id, outcome: 'continued' });
    expect(await said()).toEqual(['go', 'one', 'on', 'two', 'more', 'three']);
  });
});

describe('a sub-agent', () => {
  test('names the session and the call that began it', async () => {
    await watched.start();
    const own = { isSidechain: true, agentId: 'a1' };
    const spawn = new RecordingLines().user('go').calls('t1', 'Task', { prompt: 'count' });
    const child = new RecordingLines().user('count').says('three');
    await append(...lines(spawn), ...lines(child).map((record) => ({ ...record, ...own, uuid: `c-${record.uuid}` })));
    await watched.reached(`${id}.2`, 2);
    const records = await (await watched.store.latest()).records(sessionId(`${id}.2`), { kinds: ['event'] });
    expect(records.map(({ body }) => body)).toEqual([
      { type: 'parent-session', subject: id, data: { relation: 'subagent', call: 't1' } },
    ]);
  });
});
